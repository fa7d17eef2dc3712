package tool

import (
	"context"
	"io"

	"agentctl.dev/agentctl/api/reason"
	"agentctl.dev/agentctl/api/v1alpha1"
)

// Streams are the streams of a program that is spoken with over them. The program never
// waits for a reader of what it writes.
type Streams struct {
	In        io.Reader
	Out, Errs io.Writer
}

// Images is a Source that starts programs of images for sources of other kinds, whose
// programs may be in one. It contains them as those of its own tools.
type Images interface {
	Source
	// Begin removes what killed runs have left, and prepares what tools of its own need.
	Begin(ctx context.Context, tools []Definition)
	// Speak starts the program of spec.source.container of a definition.
	Speak(ctx context.Context, d *Definition, s Streams) (Running, error)
	// More is the tool with the paths that a call may use and its program does not see; nil
	// where there are none.
	More(d *Definition, beyond Outside) *Definition
}

// Images returns what starts programs of images. It must not be asked for by a source
// that the pool is closing.
func (p *Pool) Images() (Images, error) {
	kinds := p.o.Site.o.Kinds
	for i := range kinds {
		if k := &kinds[i]; k.Isolate == nil || k.Level != v1alpha1.IsolationContainer {
			continue
		}
		s, err := p.source(&Definition{Facts: Facts{Kind: kinds[i].Name}})
		if images, ok := s.(Images); ok && err == nil {
			return images, nil
		}
	}
	return nil, reason.New(reason.IsolationUnavailable, "programs of images cannot be started here").
		WithHint("declare the server with spec.source.mcp.stdio, which runs it in a sandbox")
}
