package host

import "agentctl.dev/agentctl/plugins/sdk/toolpb"

// Binding bounds a call to what it was found to do when it was judged: what it may change,
// which programs it may start, and whether it may open connections. In the folders of
// Scratch it may change everything.
type Binding struct {
	Paths    []BoundPath
	Programs []string
	Network  bool
	Scratch  []string
}

// BoundPath is a file or folder that a call may change. Op is one of the operations of the
// SDK; Links is the number of names that the file had, where it had several.
type BoundPath struct {
	Path, Op string
	Links    int
}

func (b *Binding) message() *toolpb.Binding {
	if b == nil {
		return nil
	}
	m := &toolpb.Binding{Programs: b.Programs, Network: b.Network, Scratch: b.Scratch}
	for _, p := range b.Paths {
		m.Paths = append(m.Paths, &toolpb.BoundPath{Path: p.Path, Op: p.Op, Links: int32(p.Links)}) //nolint:gosec // names of a file
	}
	return m
}
