export { drizzle, knex, mikroOrm, mysql2, pg, prisma, sequelize, typeorm } from './adapters.js';
export type { FencingDialect } from './dialect.js';
export { Fenced, type FencedDecorator } from './fenced.decorator.js';
export { type Execute, FencingTable, type FencingTableOptions } from './fencing-table.js';
