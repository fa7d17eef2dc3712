package telemetry

// Conventions is the version of the OpenTelemetry semantic conventions whose names these
// are. Those about generative AI are still in development there and may be renamed.
const Conventions = "1.41.0"

// schemaURL names the conventions in what is sent.
const schemaURL = "https://opentelemetry.io/schemas/" + Conventions

// The operations. Each is also the first word of the name of its spans.
const (
	opInvokeAgent = "invoke_agent"
	opChat        = "chat"
	opExecuteTool = "execute_tool"
)

// The attributes of the conventions.
const (
	attrOperation     = "gen_ai.operation.name"
	attrProvider      = "gen_ai.provider.name"
	attrAgentID       = "gen_ai.agent.id"
	attrAgentName     = "gen_ai.agent.name"
	attrConversation  = "gen_ai.conversation.id"
	attrRequestModel  = "gen_ai.request.model"
	attrResponseModel = "gen_ai.response.model"
	attrFinish        = "gen_ai.response.finish_reasons"
	attrFirstChunk    = "gen_ai.response.time_to_first_chunk"
	attrInputTokens   = "gen_ai.usage.input_tokens"
	attrOutputTokens  = "gen_ai.usage.output_tokens"
	attrCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	attrCacheWrite    = "gen_ai.usage.cache_creation.input_tokens"
	attrReasoning     = "gen_ai.usage.reasoning.output_tokens"
	attrToolName      = "gen_ai.tool.name"
	attrToolType      = "gen_ai.tool.type"
	attrCallID        = "gen_ai.tool.call.id"
	attrTokenType     = "gen_ai.token.type"
	attrError         = "error.type"

	attrInput     = "gen_ai.input.messages"
	attrOutput    = "gen_ai.output.messages"
	attrArguments = "gen_ai.tool.call.arguments"
	attrResult    = "gen_ai.tool.call.result"

	attrService         = "service.name"
	attrServiceVersion  = "service.version"
	attrServiceInstance = "service.instance.id"
)

// The attributes of agentctl's own.
const (
	attrDecision     = "agentctl.decision"
	attrRule         = "agentctl.rule"
	attrRisk         = "agentctl.risk"
	attrApproval     = "agentctl.approval"
	attrApprovalWait = "agentctl.approval.wait_ms"
	attrAttempt      = "agentctl.attempt"
	attrPhase        = "agentctl.run.phase"
	attrReason       = "agentctl.run.reason"
	attrSteps        = "agentctl.run.steps"
	attrCost         = "agentctl.cost.usd"
	attrSummary      = "agentctl.summary"
	attrRetry        = "agentctl.retry"
)

// eventRetry is a request that failed and was sent again.
const eventRetry = "agentctl.retry"

// The metrics of the conventions, with their units and the bounds of their buckets.
const (
	metricDuration = "gen_ai.client.operation.duration"
	metricTokens   = "gen_ai.client.token.usage"
	unitDuration   = "s"
	unitTokens     = "{token}"
)

var (
	boundsDuration = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	boundsTokens   = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// providers are those whose name the conventions spell differently.
var providers = map[string]string{"gemini": "gcp.gemini"}
