import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import libsql from 'libsql';
import { DataSource } from 'typeorm';

/** A SQLite database in a file, to which each connection has its own view: a transaction does not see what is not committed. */
export class TestDatabase {
  private constructor(
    private readonly directory: string,
    private readonly opened: DataSource[] = [],
  ) {}

  static async create(): Promise<TestDatabase> {
    return new TestDatabase(await mkdtemp(join(tmpdir(), 'locks-')));
  }

  /** One more connection. */
  async connect(): Promise<DataSource> {
    const dataSource = new DataSource({
      type: 'better-sqlite3',
      // The same interface, and needs no compiler where it is installed.
      driver: libsql,
      database: join(this.directory, 'database'),
      enableWAL: true,
    });
    this.opened.push(await dataSource.initialize());
    return dataSource;
  }

  async remove(): Promise<void> {
    await Promise.all(this.opened.map((dataSource) => dataSource.destroy()));
    await rm(this.directory, { recursive: true });
  }
}
