package telemetry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
)

func TestTheNamesAreThoseOfTheConventions(t *testing.T) {
	if semconv.SchemaURL != schemaURL {
		t.Errorf("the schema is %s, ours %s", semconv.SchemaURL, schemaURL)
	}
	for ours, theirs := range map[string]string{
		opInvokeAgent: semconv.GenAIOperationNameInvokeAgent.Value.AsString(), opChat: semconv.GenAIOperationNameChat.Value.AsString(),
		opExecuteTool: semconv.GenAIOperationNameExecuteTool.Value.AsString(), providers["gemini"]: semconv.GenAIProviderNameGCPGemini.Value.AsString(),
		attrOperation: string(semconv.GenAIOperationNameKey), attrProvider: string(semconv.GenAIProviderNameKey),
		attrAgentID: string(semconv.GenAIAgentIDKey), attrAgentName: string(semconv.GenAIAgentNameKey), attrConversation: string(semconv.GenAIConversationIDKey),
		attrRequestModel: string(semconv.GenAIRequestModelKey), attrResponseModel: string(semconv.GenAIResponseModelKey),
		attrFinish: string(semconv.GenAIResponseFinishReasonsKey), attrFirstChunk: string(semconv.GenAIResponseTimeToFirstChunkKey),
		attrInputTokens: string(semconv.GenAIUsageInputTokensKey), attrOutputTokens: string(semconv.GenAIUsageOutputTokensKey),
		attrCacheRead: string(semconv.GenAIUsageCacheReadInputTokensKey), attrCacheWrite: string(semconv.GenAIUsageCacheCreationInputTokensKey),
		attrReasoning: string(semconv.GenAIUsageReasoningOutputTokensKey), attrToolName: string(semconv.GenAIToolNameKey), attrToolType: string(semconv.GenAIToolTypeKey),
		attrCallID: string(semconv.GenAIToolCallIDKey), attrTokenType: string(semconv.GenAITokenTypeKey), attrError: string(semconv.ErrorTypeKey),
		attrInput: string(semconv.GenAIInputMessagesKey), attrOutput: string(semconv.GenAIOutputMessagesKey),
		attrArguments: string(semconv.GenAIToolCallArgumentsKey), attrResult: string(semconv.GenAIToolCallResultKey),
		attrService: string(semconv.ServiceNameKey), attrServiceVersion: string(semconv.ServiceVersionKey), attrServiceInstance: string(semconv.ServiceInstanceIDKey),
		metricDuration: genaiconv.ClientOperationDuration{}.Name(), unitDuration: genaiconv.ClientOperationDuration{}.Unit(),
		metricTokens: genaiconv.ClientTokenUsage{}.Name(), unitTokens: genaiconv.ClientTokenUsage{}.Unit(),
	} {
		if ours != theirs {
			t.Errorf("%q is called %q by the conventions", ours, theirs)
		}
	}
}

func TestAllNamesAreInOneFile(t *testing.T) {
	files, err := parser.ParseDir(token.NewFileSet(), ".", nil, 0) //nolint:staticcheck // the folder is one package
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range files["telemetry"].Files {
		if name == "names.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if _, imports := n.(*ast.ImportSpec); imports {
				return false
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, _ := strconv.Unquote(lit.Value); strings.HasPrefix(s, "gen_ai.") || strings.HasPrefix(s, "agentctl.") && s != scope {
					t.Errorf("%s: %q belongs into names.go", name, s)
				}
			}
			return true
		})
	}
}
