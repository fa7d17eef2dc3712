//go:build !linux

package shell

import "os/exec"

// forest knows process groups only: agents run on Linux.
type forest struct{}

func newForest() *forest { return &forest{} }

func (f *forest) plant(cmd *exec.Cmd, start func() error) (*tree, error) {
	return sown(f, cmd, 0, start)
}

func (f *forest) forget(*tree) {}

func (f *forest) bare() bool { return false }

func (t *tree) living(bool) []int { return t.group() }
