// Loaded into a controller before it starts: its wall clock is shifted by as many milliseconds as it is told to. Its
// monotonic clock goes on as it is.
let shiftMs = 0
const now = Date.now
Date.now = () => now() + shiftMs

process.on('message', (message) => {
  shiftMs = message.shiftMs
})
// An open channel would keep the process from ending.
process.channel?.unref()
