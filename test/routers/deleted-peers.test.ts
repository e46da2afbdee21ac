// Announcements to routers after another one was deleted that several controllers had.
import { expect, it } from 'vitest'
import type { ConnectedRouter, ConnectedRouters } from '../../src/network/routers/connected-routers.ts'
import { PeerAnnouncements } from '../../src/network/routers/peer-announcements.ts'
import type { RouterAnnouncement } from '../../src/network/routers/router-connection.ts'
import type { Commit, ConnectedRouterFields } from '../../src/storage/transactions/changes.ts'

/** A router of release 2 without clients. Returns what it is told, too. */
function router(id: string) {
  const announcements: RouterAnnouncement[] = []
  const connection = { announce: (announcement: RouterAnnouncement) => void announcements.push(announcement) }
  const hello = { routerId: id, version: { version: 'v2.0.3' }, linkListeners: [] }
  return { router: { id, hello, connection } as unknown as ConnectedRouter, announcements }
}

it('those that connect later are not told about it', async () => {
  const connected = new Map<string, ConnectedRouter>()
  const elsewhere = new Map([['gone', { listeners: [], versionInfo: { version: 'v2.0.3' } }]])
  const peers = new PeerAnnouncements(
    {
      addObserver() {},
      get: (id: string) => connected.get(id),
      list: () => [...connected.values()],
    } as unknown as ConnectedRouters,
    {
      addObserver() {},
      findFields: (id) => elsewhere.get(id) as unknown as ConnectedRouterFields | undefined,
    },
  )
  const { router: gone } = router('gone')
  connected.set('gone', gone)
  peers.routerConnected(gone)

  // In the order in which a commit reaches what is connected, what the others have, and the announcements.
  connected.delete('gone')
  peers.routerDisconnected(gone)
  elsewhere.delete('gone')
  peers.apply({ changes: [{ resource: 'edge-routers', operation: 'delete', id: 'gone' }] } as unknown as Commit)
  const newcomers = ['first', 'second'].map(router)
  for (const { router: newcomer } of newcomers) {
    connected.set(newcomer.id, newcomer)
    peers.routerConnected(newcomer)
  }

  const listPeerIds = () =>
    newcomers.map(({ announcements }) =>
      announcements.flatMap((one) => (one.kind === 'peers-changed' ? one.changes.map(({ routerId }) => routerId) : [])),
    )
  await expect.poll(listPeerIds).toEqual([['second'], ['first']])
})
