// Package manifests holds the examples that are shipped: agentctl init writes one of them as a beginning, and agentctl demo runs one.
package manifests

import (
	"embed"
	"io/fs"
)

// files are small: texts, and one recording each. No example holds a go.mod, which would
// keep its folder out: those that need one declare it in their Test.
//
//go:embed ci-failure-explainer coding-agent dependency-bumper docs-drift duplicate-finder flaky-test-triage incident-triage
//go:embed issue-labeller pr-reviewer release-notes research terraform-plan-review
//go:embed demo-caught demo-fork demo-lied
var files embed.FS

// Demo is the folder of a demo.
func Demo(name string) (fs.FS, error) { return fs.Sub(files, "demo-"+name) }

// Example is the folder of an example.
func Example(name string) (fs.FS, error) { return fs.Sub(files, name) }
