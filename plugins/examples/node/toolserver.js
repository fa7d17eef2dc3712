'use strict'
// Serves functions as tools to agentctl. This file and tool.proto are the whole
// protocol; a tool's author changes neither. docs/plugins.md of agentctl
// describes what happens here.

const fs = require('node:fs')
const path = require('node:path')
const grpc = require('@grpc/grpc-js')
const loader = require('@grpc/proto-loader')

const MAX_MESSAGE = 64 << 20
const MAX_CHUNK = 32 << 10
const MAX_OUTPUT = 10 << 20
const MAX_PROGRESS = 4 << 10
const MAX_METADATA = 1 << 20

/** Something for the model to read: the call fails with this text. */
class ToolError extends Error {}

/** No person answers the question; the text says why. */
class Nobody extends ToolError {}

/** The call was cancelled, or its time is up. */
class Cancelled extends Error {}

/** One call: who asks, and ways to say something before the result. */
class Call {
  constructor (request, write) {
    this.id = request.call_id
    this.run = request.run
    this.agent = request.agent
    this.workspace = request.workspace
    this.key = request.idempotency_key
    this.hidden = request.hidden
    this._write = write
    this._limit = Math.min(Number(request.max_output_bytes) || MAX_OUTPUT, MAX_OUTPUT)
    this._kept = 0
    this._dropped = 0
    this._shown = -Infinity
    this._wishes = new Map()
    this._next = 0
    this._stop = new AbortController()
    this._code = '' // why it was stopped
    /** Ends with the call: hand it to whatever the tool waits for. */
    this.signal = this._stop.signal
  }

  /** Streams text of the result, in front of what the tool returns. Await it. */
  async output (text) {
    let data = Buffer.from(text)
    const room = Math.max(this._limit - this._kept, 0)
    this._dropped += Math.max(data.length - room, 0)
    data = data.subarray(0, room)
    this._kept += data.length
    for (let i = 0; i < data.length; i += MAX_CHUNK) {
      await this._write({ output: { chunk: data.subarray(i, i + MAX_CHUNK) } })
    }
  }

  /** Shows watchers the newest output, at most ten times a second. */
  progress (text) {
    const now = performance.now()
    if (now - this._shown < 100) return
    this._shown = now
    const tail = Buffer.from(text).subarray(-MAX_PROGRESS)
    let from = 0 // not inside a character
    while (from < tail.length && (tail[from] & 0xc0) === 0x80) from++
    this._write({ progress: { text: tail.subarray(from).toString() } })
  }

  /** Tells watchers what the call does and how far it is: a JSON object of at most 16 KiB. */
  metadata (title, data) {
    this._write({ progress: { title: title || '', metadata_json: Buffer.from(data === undefined ? '' : JSON.stringify(data)) } })
  }

  /** Waits; fails with Cancelled as soon as the call should end. */
  wait (ms) {
    return new Promise((resolve, reject) => {
      if (this.signal.aborted) return reject(new Cancelled())
      const timer = setTimeout(resolve, ms)
      this.signal.addEventListener('abort', () => { clearTimeout(timer); reject(new Cancelled()) }, { once: true })
    })
  }

  /** Asks the person behind the run; fails with Nobody without one. */
  async ask (question, ...options) {
    const answer = await this._wish({ question: { text: question, options } })
    if (answer.refusal) throw new Nobody(answer.refusal)
    return answer.text
  }

  /** Returns the newest messages of the run: [{role, text}]. */
  async history (most = 0) {
    const answer = await this._wish({ history: { most } })
    if (answer.refusal) throw new ToolError('history of the run: ' + answer.refusal)
    return JSON.parse(answer.history_json.toString())
  }

  _wish (wish) {
    return new Promise((resolve, reject) => {
      if (this.signal.aborted) return reject(new Cancelled())
      const id = ++this._next
      this._wishes.set(String(id), resolve)
      this.signal.addEventListener('abort', () => reject(new Cancelled()), { once: true })
      this._write({ ask: { id, ...wish } })
    })
  }

  _grant (answer) {
    const waits = this._wishes.get(String(answer.id))
    this._wishes.delete(String(answer.id))
    if (waits) waits(answer)
  }

  _end (code) {
    this._code = this._code || code
    this._stop.abort()
  }
}

const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v)

const kinds = {
  object: isObject,
  array: Array.isArray,
  string: (v) => typeof v === 'string',
  boolean: (v) => typeof v === 'boolean',
  null: (v) => v === null,
  integer: Number.isInteger,
  number: Number.isFinite
}

/**
 * Says what is wrong with a value, or nothing. It knows the words that tools use
 * most. agentctl has held the arguments against the whole schema before; another
 * caller may not have.
 */
function misfit (schema, value, where = 'the arguments') {
  const types = [].concat(schema.type ?? [])
  if (types.length && !types.some((type) => !kinds[type] || kinds[type](value))) return `${where}: want ${types.join(' or ')}`
  if (schema.enum && !schema.enum.includes(value)) return `${where}: want one of ${schema.enum}`
  if (isObject(value)) {
    const known = schema.properties || {}
    for (const name of schema.required || []) {
      if (!Object.hasOwn(value, name)) return `${where}: ${name} is missing`
    }
    for (const [name, part] of Object.entries(value)) {
      const wrong = Object.hasOwn(known, name)
        ? misfit(known[name], part, name)
        : schema.additionalProperties === false && `${where}: there is no ${name}`
      if (wrong) return wrong
    }
  }
  if (Array.isArray(value) && isObject(schema.items)) {
    for (const [i, part] of value.entries()) {
      const wrong = misfit(schema.items, part, `${where}[${i}]`)
      if (wrong) return wrong
    }
  }
}

/** The methods of agentctl.tool.v1.Tool. */
class Service {
  constructor (tools) {
    this.tools = new Map(tools.map((t) => [t.name, t]))
    this.calls = new Map() // those that run, by ticket
  }

  Describe (_, reply) {
    reply(null, {
      tools: [...this.tools.values()].map((t) => ({
        name: t.name, description: t.description, parameters_json: Buffer.from(JSON.stringify(t.parameters))
      }))
    })
  }

  async Call (stream) {
    const request = stream.request
    let open = true
    const write = async (event) => {
      if (!open) return
      if (!stream.write(event)) { // a tool that is faster than its reader waits
        await new Promise((resolve) => {
          stream.once('drain', resolve)
          stream.once('cancelled', resolve)
          stream.once('close', resolve)
        })
      }
    }
    const call = new Call(request, write)
    stream.on('cancelled', () => call._end('cancelled'))
    const deadline = Number(request.deadline_ms)
    const timer = deadline > 0 ? setTimeout(() => call._end('timeout'), deadline) : undefined

    const work = this.outcome(call, request)
    const flight = { call, over: work }
    if (request.ticket !== '0') this.calls.set(request.ticket, flight)
    work.then(() => this.calls.get(request.ticket) === flight && this.calls.delete(request.ticket))

    // A tool that does not listen must not hold back the output so far.
    const late = new Promise((resolve) => call.signal.addEventListener('abort', () => {
      setTimeout(() => resolve({ text: 'did not end in time', code: call._code }), 500).unref()
    }, { once: true }))
    const result = await Promise.race([work, late])
    clearTimeout(timer)
    let text = result.text || ''
    if (text.length > MAX_CHUNK / 4 || call._kept + Buffer.byteLength(text) > call._limit) {
      await call.output(text)
      text = ''
    }
    let metadata = ''
    try {
      metadata = JSON.stringify(result.metadata) ?? ''
    } catch (e) { // losing it must not lose the result
      console.error('metadata of a result dropped:', e)
    }
    await write({
      result: {
        text, is_error: Boolean(result.code), code: result.code || '', title: result.title || '', writes: Boolean(result.writes),
        metadata_json: Buffer.from(metadata.length <= MAX_METADATA ? metadata : ''), dropped_bytes: call._dropped
      }
    })
    open = false
    stream.end()
  }

  /** Runs the tool; whatever it does is a result. It never fails. */
  async outcome (call, request) {
    const tool = this.tools.get(request.tool)
    if (!tool) return { text: `this program serves no tool "${request.tool}"`, code: 'unknown_tool' }
    let args
    try {
      args = JSON.parse(request.args_json.toString())
    } catch (e) {
      return { text: `arguments of ${tool.name}: ${e.message}`, code: 'schema' }
    }
    try {
      const wrong = misfit(tool.parameters, args)
      if (wrong) return { text: `arguments of ${tool.name}: ${wrong}`, code: 'schema' }
      const result = await tool.run(call, args)
      return isObject(result) ? result : { text: result === undefined ? '' : String(result) }
    } catch (e) {
      if (call.signal.aborted) return { code: call._code }
      if (e instanceof ToolError) return { text: e.message, code: 'tool' }
      console.error(e)
      return { text: `the tool failed: ${e}`, code: 'tool' }
    }
  }

  async Cancel ({ request }, reply) {
    const flight = this.calls.get(request.ticket)
    if (flight) {
      flight.call._end('cancelled')
      await flight.over
    }
    reply(null, {})
  }

  Answer ({ request }, reply) {
    this.calls.get(request.ticket)?.call._grant(request)
    reply(null, {})
  }

  endAll () {
    for (const { call } of this.calls.values()) call._end('cancelled')
  }
}

/** Is the whole main program. A tool is {name, description, parameters, run}. */
function serve (...tools) {
  if (process.env.AGENTCTL_PLUGIN !== 'tool-6c1f0a52') {
    console.error('this is a tool of agentctl: try agentctl plugin test ' + process.argv[1])
    process.exit(1)
  }
  if (process.env.PLUGIN_PROBES === '1') tools.push(...require('./probes'))
  const socket = path.join(process.env.PLUGIN_UNIX_SOCKET_DIR, 'tool.sock')
  for (const name of Object.keys(process.env)) { // what a tool starts must not find them
    if (name === 'AGENTCTL_PLUGIN' || name.startsWith('PLUGIN_')) delete process.env[name]
  }

  const definition = loader.loadSync(path.join(__dirname, 'tool.proto'), { keepCase: true, longs: String, defaults: true, oneofs: true })
  const protocol = grpc.loadPackageDefinition(definition).agentctl.tool.v1
  const server = new grpc.Server({ 'grpc.max_receive_message_length': MAX_MESSAGE, 'grpc.max_send_message_length': MAX_MESSAGE })
  const service = new Service(tools)
  server.addService(protocol.Tool.service, {
    Describe: service.Describe.bind(service),
    Call: service.Call.bind(service),
    Cancel: service.Cancel.bind(service),
    Answer: service.Answer.bind(service)
  })
  server.bindAsync('unix:' + socket, grpc.ServerCredentials.createInsecure(), (err) => {
    if (err) throw err
    fs.writeSync(1, `1|1|unix|${socket}|grpc\n`)
    process.stdout.write = process.stderr.write.bind(process.stderr) // what a tool prints
  })
  const end = () => {
    service.endAll()
    setTimeout(() => process.exit(0), 50)
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
}

module.exports = { serve, misfit, ToolError, Nobody, Cancelled }
