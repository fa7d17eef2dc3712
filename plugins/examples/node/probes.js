'use strict'
// The tools by which "agentctl plugin test" tries what it cannot see from
// outside. They are served only to that command.

const { execFile, spawn } = require('node:child_process')
const fs = require('node:fs')
const { promisify } = require('node:util')

const line = Buffer.from('0123456789abcde\n'.repeat(2048))

function probe (name, fields, run) {
  const properties = Object.fromEntries(Object.entries(fields).map(([field, type]) => [field, { type }]))
  return {
    name: 'probe_' + name,
    description: 'A probe.',
    parameters: { type: 'object', properties, required: Object.keys(fields), additionalProperties: false },
    run
  }
}

module.exports = [
  probe('echo', { text: 'string' }, (_, { text }) => text),
  probe('wait', { ms: 'integer' }, async (call, { ms }) => {
    await call.output('begun\n')
    await call.wait(ms)
    return 'rested'
  }),
  probe('flood', { bytes: 'integer' }, async (call, { bytes }) => {
    for (let left = bytes; left > 0; left -= line.length) await call.output(line.subarray(0, left))
  }),
  probe('panic', {}, () => { throw new TypeError('this is a probe') }),
  probe('print', { text: 'string' }, async (_, { text }) => {
    console.log(text)
    const child = spawn('cat', { stdio: ['pipe', 'inherit', 'inherit'] })
    child.stdin.end(text + '\n')
    await new Promise((resolve, reject) => child.on('close', resolve).on('error', reject))
    return 'printed'
  }),
  probe('environ', {}, async () => JSON.stringify((await promisify(execFile)('env')).stdout.trim().split('\n'))),
  probe('stdin', {}, () => fs.readFileSync(0).length),
  probe('spawn', {}, () => spawn('sleep', ['300'], { stdio: 'ignore' }).pid),
  probe('ask', { text: 'string' }, (call, { text }) => call.ask(text))
]
