// The promises of the product about its speed. Every number that is judged stands here, and nowhere else.

/** The most that a request may cost; undefined is not judged. */
export interface Budget {
  /**
   * At most so many microseconds of the server's CPU. Each is a multiple of what OpenZiti's controller serves per second on
   * two cores with the medium model (the faster of its releases 1.6.5 and 2.0.3), turned into the time of one core.
   */
  readonly cpuMicroseconds?: number
  readonly openZitiPerSecond?: number
  /** At most so many times what a bare server takes that responds with as many bytes. */
  readonly timesFloor?: number
}

const budget = (
  cpuMicroseconds: number,
  openZitiPerSecond: number,
  timesFloor?: number,
): Budget & { readonly cpuMicroseconds: number } => ({
  cpuMicroseconds,
  openZitiPerSecond,
  ...(timesFloor === undefined ? {} : { timesFloor }),
})

export const budgets = {
  version: budget(55, 9_030, 1.7), // 2 times
  serviceUpdates: budget(56, 5_970, 2), // 3 times
  // 1.1 times the same by a session header.
  serviceUpdatesByToken: { cpuMicroseconds: 62, timesFloor: 2.2 },
  currentApiSession: { timesFloor: 2 },
  currentIdentity: budget(63, 788, 2), // 20 times
  ownServices: budget(89, 1_408, 2.5), // 8 times
  ownRouters: { openZitiPerSecond: 2_417, timesFloor: 2.5 },
  sessionAgain: budget(81, 1_241, 3), // 10 times
  identityById: budget(91, 550, 2), // 20 times
  identitiesPage: budget(156, 64, 2.5), // 100 times
  identityByName: budget(111, 90, 2.5), // 100 times
  identities500: budget(4_170, 1.2), // 200 times
  identityWithToken: budget(460, 72), // 30 times
  identityWhileLoading: budget(235, 142), // 30 times
  identityRoles: budget(240, 84), // 50 times
  policyAdvice: budget(148, 1_349, 3), // 5 times
  enroll: budget(935, 214), // 5 times
  signInByCertificate: budget(1_930, 173), // 3 times
  // The bare server does the same Argon2id work, and nothing else.
  signInByPassword: { timesFloor: 1.1 },
} as const satisfies Record<string, Budget>

/** The part of the budget of a sign-in that a handshake with a client certificate takes, on the machine whose time the budgets are. */
export const HANDSHAKE_MICROSECONDS = 754

/** Other bounds, in the units of their names. */
export const bounds = {
  /** A policy that joins all identities with all services. */
  joinEverythingMilliseconds: 50,
  /** The cost of a request among the most identities, divided by its cost among the fewest. */
  growth: 1.2,
  /** The same of reads that are spread over more records than are cached. */
  growthOfSpreadReads: 1.3,
  /** After loading a model of up to `fewIdentities`. */
  residentMegabytes: 250,
  startSeconds: 1.5,
  fewIdentities: 10_000,
  /** To adopt a network of OpenZiti's controller, 100,000 identities at most. */
  adoptionSeconds: 60,
  adoptionMegabytes: 500,
  /** Resident memory for each connected router. */
  routerKilobytes: 100,
  /** From the hello of a router until it has all API sessions. */
  synchronizationMilliseconds: 1_000,
  /** With one of two cores for the controller: 500 dials a second. */
  dialMicroseconds: 2_000,
  /** The first path from a router over 500 routers and 2,000 links. */
  pathMicroseconds: 200,
  /** The whole data model, read and encoded, and sent to one router: CPU. */
  modelStateMilliseconds: 1_000,
  /** A set of changes of the data model: CPU for each router that is sent it. */
  modelChangeMicroseconds: 30,
  /** From the response to a change until all routers have it. */
  modelChangeMilliseconds: 100,
  /** The log of changes: CPU of a change that touches the model, above one without the log. */
  modelLogPercent: 5,
  /** The last client of a storm is back after at most so many times the median. */
  stormLastTimesMedian: 2,
  stormAdministratorMilliseconds: 100,
  stormPollMilliseconds: 250,
  /** The CPU time of a client, divided by a bare handshake and the budgets of the requests. */
  stormTimesParts: 1.3,
  /** The CPU time of a client that resumes its TLS session, divided by that of one that does not. */
  stormResumedTimesFull: 0.75,
  /** The cost of reads at one of several controllers, divided by that at one that is alone. */
  clusterReadsTimesAlone: 1.03,
  /** A new identity for one caller, the database on the same machine. */
  clusterCreateMilliseconds: 8,
  /** The same for many callers of three controllers, the database 1 ms away in either direction: a thousand a second. */
  clusterEachCreateMilliseconds: 1,
  /** From the response of one controller until another one shows the change. */
  clusterChangeMilliseconds: { p50: 20, p99: 100 },
  clusterJoinSeconds: 30,
  /** The growth of memory from the first third of a soak to the last: of the heap, and of the process. */
  heapGrowthPercent: 3,
  residentGrowthPercent: 5,
  descriptorGrowthPercent: 3,
} as const
