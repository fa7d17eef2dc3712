package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"agentctl.dev/agentctl/api/audit"
	"agentctl.dev/agentctl/api/crds"
	"agentctl.dev/agentctl/api/event"
	"agentctl.dev/agentctl/api/view"
	"agentctl.dev/agentctl/cmd/agentctl/internal/display"
)

// The schemas that are not of a kind.
const (
	schemaResult  = "result"
	schemaEvent   = "event"
	schemaAudit   = "audit"
	schemaReceipt = "receipt"
)

func (a *app) schemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [KIND|result|event|audit|receipt]",
		Short: "Print a JSON Schema",
		Long: `Print a JSON Schema: of manifests of one kind or, without a name, of every kind
(draft-07, for editors); of the object of "run -o json" (result); of the lines
of "run -o jsonl" and of journals (event); of the lines of "audit export" (audit);
of what "audit receipt" signs (receipt).`,
		Example: `  agentctl schema > agentctl.schema.json
  # first line of a manifest, for editors with a YAML language server:
  # yaml-language-server: $schema=./agentctl.schema.json
  agentctl schema result`,
		GroupID: groupManifest,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneArg("the kind")(cmd, args)
		},
		ValidArgsFunction: completeSchemas,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := schemaText(args)
			if err != nil {
				return usage(err)
			}
			return display.Text(a.stdout(), string(text))
		},
	}
}

func schemaText(args []string) ([]byte, error) {
	if len(args) == 0 {
		return crds.EditorSchemaAll()
	}
	switch strings.ToLower(args[0]) {
	case schemaResult:
		return view.ResultSchema, nil
	case schemaEvent:
		return event.JSONSchema, nil
	case schemaAudit:
		return audit.RecordSchema, nil
	case schemaReceipt:
		return audit.StatementSchema, nil
	}
	kind, ok := crds.Resolve(args[0])
	if !ok {
		known := append(crds.Kinds(), schemaResult, schemaEvent, schemaAudit, schemaReceipt)
		return nil, &crds.UnknownError{Name: args[0], Known: known}
	}
	return crds.EditorSchema(kind)
}
