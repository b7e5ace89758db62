import { createRequire } from 'node:module';

type Pointer = number;

/** The functions of Lua's own interface that are used here, with their names in WebAssembly. */
interface Wasm {
  readonly HEAPU8: Uint8Array;
  readonly HEAPU32: Uint32Array;
  addFunction(callback: (state: Pointer) => number, signature: string): Pointer;
  _malloc(size: number): Pointer;
  _luaL_newstate(): Pointer;
  _luaL_openlibs(state: Pointer): void;
  _luaL_loadbuffer(state: Pointer, text: Pointer, length: number, name: Pointer): number;
  _luaL_ref(state: Pointer, table: number): number;
  _lua_pcall(state: Pointer, args: number, results: number, handler: number): number;
  _lua_error(state: Pointer): number;
  _lua_gettop(state: Pointer): number;
  _lua_settop(state: Pointer, top: number): void;
  _lua_type(state: Pointer, index: number): number;
  _lua_tolstring(state: Pointer, index: number, length: Pointer): Pointer;
  _lua_tonumber(state: Pointer, index: number): number;
  _lua_toboolean(state: Pointer, index: number): number;
  _lua_getfield(state: Pointer, index: number, name: Pointer): void;
  _lua_setfield(state: Pointer, index: number, name: Pointer): void;
  _lua_rawgeti(state: Pointer, index: number, at: number): void;
  _lua_rawseti(state: Pointer, index: number, at: number): void;
  _lua_rawset(state: Pointer, index: number): void;
  _lua_createtable(state: Pointer, items: number, fields: number): void;
  _lua_pushlstring(state: Pointer, text: Pointer, length: number): void;
  _lua_pushnumber(state: Pointer, number: number): void;
  _lua_pushboolean(state: Pointer, value: number): void;
  _lua_pushnil(state: Pointer): void;
  _lua_pushcclosure(state: Pointer, callback: Pointer, values: number): void;
}

interface Package {
  readonly LuaApi: { initialize(): Promise<{ readonly module: Wasm }> };
}

export const TYPES = { boolean: 1, number: 3, text: 4, table: 5 } as const;
const REGISTRY = -10_000;
const GLOBALS = -10_002;

/**
 * A Lua 5.1 in WebAssembly, by its stack. Texts are bytes, a character each, and may have any of them: the interface that the
 * package gives to JavaScript cuts them at the first zero, so that it is not used.
 */
export class LuaState {
  private readonly state: Pointer;
  private bytes: Buffer;
  private readonly lengthAt: Pointer;
  /** Room for one text on its way. */
  private room: { readonly at: Pointer; readonly size: number };
  private readonly names = new Map<string, Pointer>();

  private constructor(private readonly wasm: Wasm) {
    this.state = wasm._luaL_newstate();
    wasm._luaL_openlibs(this.state);
    this.bytes = Buffer.from(wasm.HEAPU8.buffer);
    this.lengthAt = wasm._malloc(4);
    this.room = { at: wasm._malloc(65_536), size: 65_536 };
  }

  static async open(): Promise<LuaState> {
    const { LuaApi } = createRequire(import.meta.url)('wasmoon-lua5.1') as Package;
    return new LuaState((await LuaApi.initialize()).module);
  }

  get top(): number {
    return this.wasm._lua_gettop(this.state);
  }

  set top(top: number) {
    this.wasm._lua_settop(this.state, top);
  }

  /** Leaves the text as a function on the stack. @throws what is wrong with it */
  load(source: string, name: string): void {
    const at = this.put(source);
    if (this.wasm._luaL_loadbuffer(this.state, at, source.length, this.nameOf(name)) === 0) return;
    const message = this.text(-1);
    this.drop();
    throw new Error(message);
  }

  /** Calls the function below its arguments. @returns whether it has come to its end */
  call(args: number, results: number, handler = 0): boolean {
    return this.wasm._lua_pcall(this.state, args, results, handler) === 0;
  }

  /** Ends the function that runs, with the value on the stack as its error. To be called by a function of JavaScript alone. */
  raise(): number {
    return this.wasm._lua_error(this.state);
  }

  /** Takes a value from the stack, and keeps it. */
  keep(): number {
    return this.wasm._luaL_ref(this.state, REGISTRY);
  }

  pushKept(reference: number): void {
    this.wasm._lua_rawgeti(this.state, REGISTRY, reference);
  }

  pushFunction(callback: () => number): void {
    this.wasm._lua_pushcclosure(this.state, this.wasm.addFunction(callback, 'ii'), 0);
  }

  pushText(text: string): void {
    this.wasm._lua_pushlstring(this.state, this.put(text), text.length);
  }

  pushNumber(number: number): void {
    this.wasm._lua_pushnumber(this.state, number);
  }

  pushBoolean(value: boolean): void {
    this.wasm._lua_pushboolean(this.state, value ? 1 : 0);
  }

  pushNil(): void {
    this.wasm._lua_pushnil(this.state);
  }

  pushTable(items: number, fields: number): void {
    this.wasm._lua_createtable(this.state, items, fields);
  }

  /** Takes a value from the stack, into the table below it. */
  setItem(at: number): void {
    this.wasm._lua_rawseti(this.state, -2, at);
  }

  /** As `setItem`, with the key below the value. */
  setEntry(): void {
    this.wasm._lua_rawset(this.state, -3);
  }

  setField(name: string): void {
    this.wasm._lua_setfield(this.state, -2, this.nameOf(name));
  }

  setGlobal(name: string): void {
    this.wasm._lua_setfield(this.state, GLOBALS, this.nameOf(name));
  }

  /** Puts an item of the table on top of the stack. */
  pushItem(at: number): void {
    this.wasm._lua_rawgeti(this.state, -1, at);
  }

  pushField(name: string): void {
    this.wasm._lua_getfield(this.state, -1, this.nameOf(name));
  }

  drop(): void {
    this.wasm._lua_settop(this.state, -2);
  }

  type(index: number): number {
    return this.wasm._lua_type(this.state, index);
  }

  number(index: number): number {
    return this.wasm._lua_tonumber(this.state, index);
  }

  boolean(index: number): boolean {
    return this.wasm._lua_toboolean(this.state, index) !== 0;
  }

  text(index: number): string {
    const { wasm } = this;
    const at = wasm._lua_tolstring(this.state, index, this.lengthAt);
    return this.memory.toString('latin1', at, at + wasm.HEAPU32[this.lengthAt >> 2]!);
  }

  /** It may have moved to a place with more room. */
  private get memory(): Buffer {
    const { buffer } = this.wasm.HEAPU8;
    if (this.bytes.buffer !== buffer) this.bytes = Buffer.from(buffer);
    return this.bytes;
  }

  private put(text: string): Pointer {
    if (text.length > this.room.size) {
      const size = 2 * text.length;
      this.room = { at: this.wasm._malloc(size), size };
    }
    this.memory.write(text, this.room.at, 'latin1');
    return this.room.at;
  }

  private nameOf(name: string): Pointer {
    let at = this.names.get(name);
    if (at === undefined) {
      at = this.wasm._malloc(name.length + 1);
      this.memory.write(`${name}\0`, at, 'latin1');
      this.names.set(name, at);
    }
    return at;
  }
}
