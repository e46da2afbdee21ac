// The releases of routers, as far as they decide which sessions a router serves.
import type { VersionInfo } from '../definitions/resources/routers.ts'

const FIRST_SUPPORTING_MAJOR = 2

/**
 * Whether a router of this release serves sessions that began by OpenID Connect. A router that has not connected, or a build without
 * a release, may be any.
 */
export function supportsOidc(lastVersion: Pick<VersionInfo, 'version'> | null): boolean {
  const major = /^v?(\d+)\.\d+\.\d+/.exec(lastVersion?.version ?? '')?.[1]
  return major !== undefined && Number(major) >= FIRST_SUPPORTING_MAJOR
}
