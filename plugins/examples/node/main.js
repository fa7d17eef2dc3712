#!/usr/bin/env node
'use strict'
// The tools of this program; toolserver.js serves them.

const { serve, ToolError } = require('./toolserver')

serve({
  name: 'wordcount',
  description: 'Counts the words of a text.',
  parameters: {
    type: 'object',
    properties: {
      text: { type: 'string', description: 'the text' },
      seconds: { type: 'integer', minimum: 0, description: 'how long to take over it' }
    },
    required: ['text'],
    additionalProperties: false
  },
  async run (call, { text, seconds = 0 }) {
    if (!text.trim()) throw new ToolError('the text is empty') // the model reads this and mends its call
    for (let i = 0; i < seconds; i++) {
      call.progress('counting')
      await call.wait(1000) // ends at once when the call is cancelled
    }
    return `${text.trim().split(/\s+/).length} words`
  }
})
