// The sizes of the networks that are measured.

export const modelNames = ['tiny', 'small', 'medium', 'large'] as const
export type ModelName = (typeof modelNames)[number]

export interface Model {
  readonly identities: number
  readonly services: number
  /** Of service policies, and of edge router policies. */
  readonly policies: number
  readonly edgeRouters: number
  /** Identities besides these that are enrolled, and keep their certificates. */
  readonly clients: number
  /** The number of identities that enroll at the same moment. */
  readonly enrollingAtOnce: number
  /** Clients that come back at the same moment: with certificates, with passwords, and to enroll. */
  readonly storm: { readonly devices: number; readonly people: number; readonly enrolling: number }
  /** Simulated routers that are connected at once. */
  readonly connectedRouters: number
  /** Simulated routers of release 2 that follow the data model. */
  readonly followingRouters: number
  /** One of the connected routers is sent so many. */
  readonly apiSessions: number
  /** Numbers of identities that are compared side by side, everything else being equal. */
  readonly growth: readonly [number, number]
  /** Each of the two is measured so often. */
  readonly growthTurns: number
  /** The controller and the bare server are measured in turn, at least so often. */
  readonly floorTurns: number
  /** A start is measured so often. */
  readonly starts: number
}

export const models: Readonly<Record<ModelName, Model>> = {
  // To see that every measurement works; its times say nothing.
  tiny: {
    identities: 60,
    services: 20,
    policies: 5,
    edgeRouters: 5,
    clients: 10,
    enrollingAtOnce: 10,
    storm: { devices: 10, people: 5, enrolling: 10 },
    connectedRouters: 5,
    followingRouters: 3,
    apiSessions: 30,
    // The first one is the network of the model, so that a run that keeps networks loads it once.
    growth: [60, 100],
    growthTurns: 1,
    floorTurns: 1,
    starts: 1,
  },
  small: {
    identities: 1_000,
    services: 200,
    policies: 50,
    edgeRouters: 50,
    clients: 200,
    enrollingAtOnce: 250,
    storm: { devices: 500, people: 100, enrolling: 250 },
    connectedRouters: 50,
    followingRouters: 50,
    apiSessions: 1_000,
    growth: [1_000, 10_000],
    growthTurns: 3,
    floorTurns: 5,
    starts: 3,
  },
  medium: {
    identities: 10_000,
    services: 1_000,
    policies: 100,
    edgeRouters: 50,
    clients: 1_000,
    enrollingAtOnce: 250,
    storm: { devices: 20_000, people: 1_000, enrolling: 2_000 },
    connectedRouters: 500,
    followingRouters: 200,
    apiSessions: 20_000,
    growth: [1_000, 100_000],
    growthTurns: 3,
    floorTurns: 5,
    starts: 3,
  },
  large: {
    identities: 100_000,
    services: 2_000,
    policies: 250,
    edgeRouters: 50,
    clients: 1_000,
    enrollingAtOnce: 250,
    storm: { devices: 20_000, people: 1_000, enrolling: 2_000 },
    connectedRouters: 500,
    followingRouters: 200,
    apiSessions: 20_000,
    growth: [10_000, 100_000],
    growthTurns: 3,
    floorTurns: 5,
    starts: 3,
  },
}
