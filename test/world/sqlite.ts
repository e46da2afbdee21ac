// The library that opens SQLite files, for tests that read and damage them by themselves.
import { loadSqlite } from '../../src/storage/sqlite/sqlite-library.ts'

export const Sqlite = loadSqlite()
