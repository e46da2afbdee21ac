// One request over a connection of its own, for everything that is not measured.
import { createSecureContext } from 'node:tls'
import type { Answer } from '../generator/answer-reader.ts'
import { Connection, type Credential, type Target } from '../generator/connection.ts'

/** Sends a request and resolves with the whole answer. */
export function exchange(target: Target, request: Buffer, credential?: Credential): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const secureContext = credential && createSecureContext(credential)
    const connection = new Connection(
      { target, secureContext, keepsBodies: true },
      {
        onOpen: () => connection.send(request),
        onAnswer: (answer) => {
          connection.close()
          resolve(answer)
        },
        onFailure: reject,
      },
    )
  })
}
