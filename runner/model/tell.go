package model

import "agentctl.dev/agentctl/api/message"

// Tell emits a complete answer, each text in the pieces of cut and each call in one.
func Tell(out *message.Output, cut func(string) []string, emit func(message.Delta) error) error {
	for _, said := range []message.Delta{{Kind: message.DeltaReasoning, Text: out.Reasoning}, {Kind: message.DeltaText, Text: out.Text}} {
		for _, piece := range cut(said.Text) {
			if err := emit(message.Delta{Kind: said.Kind, Text: piece}); err != nil {
				return err
			}
		}
	}
	for i, call := range out.Calls {
		if err := emit(message.Delta{Kind: message.DeltaTool, Index: i, Tool: call.Tool, Call: call.ID, Text: call.Args}); err != nil {
			return err
		}
	}
	return nil
}
