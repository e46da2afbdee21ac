// Changes single settings in an operator's file, and leaves every other line as it is.
import { readFileSync } from 'node:fs'
import { writePrivateFile } from '../pki/files.ts'
import { DataDirectoryError } from './data-directory.ts'
import { findMountPoint } from './mount-points.ts'
import { renderSetting } from './render-config.ts'
import { ConfigError } from './setting-types.ts'
import { getDefault, type SettingKey } from './settings.ts'

/** New values by setting; undefined for one that gets its default again. */
export type SettingChanges = Readonly<Partial<Record<SettingKey, unknown>>>

/** Requires that a file can be changed, before other things are that belong to the change. @throws DataDirectoryError if it is a mount point */
export function requireEditable(path: string): void {
  if (findMountPoint([path]) === undefined) return
  const remedy =
    'run the command where the file is part of the data directory; then mount the file that the command has changed'
  throw new DataDirectoryError('MOUNTED', `${path} is a mount point, which this command cannot replace`, remedy)
}

/**
 * Changes settings that are in groups. One that gets its default is left as a comment.
 * @throws ConfigError if the file has a group in another form than a line for each setting
 */
export function editConfigFile(path: string, changes: SettingChanges): void {
  const lines = readFileSync(path, 'utf8').split('\n')
  for (const [key, value] of Object.entries(changes)) setLine(lines, key as SettingKey, value)
  writePrivateFile(path, lines.join('\n'))
}

function setLine(lines: string[], key: SettingKey, value: unknown): void {
  const [group = '', name = ''] = key.split('.')
  const start = lines.findIndex((line) => line.startsWith(`${group}:`))
  if (start === -1) {
    if (value !== undefined) lines.push(`${group}:`, `  ${render(name, value)}`, '')
    return
  }
  if (!/^\w+:\s*(?:#.*)?$/.test(lines[start] as string))
    throw new ConfigError(key, `cannot be set, because ${group} is not written with a line for each setting`)
  const length = lines.slice(start + 1).findIndex((line) => /^[^\s#]/.test(line))
  const block = lines.slice(start + 1, length === -1 ? undefined : start + 1 + length)
  const indent = block.map((line) => /^\s+(?=[\w-]+:)/.exec(line)?.[0]).find(Boolean) ?? '  '
  const text = value === undefined ? `${indent}# ${render(name, getDefault(key))}` : indent + render(name, value)
  const at = findSetting(block, name)
  if (at !== -1) lines[start + 1 + at] = text
  else if (value !== undefined) lines.splice(start + 1, 0, text)
}

function render(name: string, value: unknown): string {
  return renderSetting(name, value).join('\n')
}

/** The index of the line of a setting; if it has none, of the comment in its place; −1 without either. */
function findSetting(block: readonly string[], name: string): number {
  const settings = block.map((line) => /^\s+(#\s*)?([\w-]+):/.exec(line) ?? [])
  const written = settings.findIndex(([, mark, key]) => key === name && mark === undefined)
  return written === -1 ? settings.findIndex(([, , key]) => key === name) : written
}
