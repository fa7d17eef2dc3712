package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A command is decisive where a script that ends with 0 says that this command did, if it
// was executed at all:
//
//	construct           decisive                           not
//	a; b                b                                  a, but with set -e
//	a && b              both, as the end of a script       a, anywhere else
//	a || b              b                                  a
//	a | b               b, and a with set -o pipefail      a
//	! a, a &            -                                  a
//	if, case            the ends of their branches         the conditions
//	while, for          -                                  all of it
//	timeout 9 a, env a  a, behind programs that hand on its status
//
// Whether a branch was taken is not known from the text: a command counts where it was also
// seen to be executed.

// decider marks the commands of one script that are decisive.
type decider struct {
	marked            map[*syntax.CallExpr]bool
	errexit, pipefail bool
}

// list marks what decides a list whose end is, or is not, the end of the script. Errexit
// has no effect where a status is tested.
func (d *decider) list(list []*syntax.Stmt, last, tested bool) {
	for i, s := range list {
		d.stmt(s, last && i == len(list)-1, tested)
	}
}

func (d *decider) stmt(s *syntax.Stmt, last, tested bool) {
	if s.Negated || s.Background || s.Coprocess || s.Disown || !last && (!d.errexit || tested) && !d.mayEnable(s) {
		return
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		d.call(c, last || d.errexit && !tested)
	case *syntax.Block:
		d.list(c.Stmts, last, tested)
	case *syntax.Subshell:
		inner := *d
		inner.list(c.Stmts, last, tested)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			d.stmt(c.Stmt, last, tested)
		}
	case *syntax.IfClause:
		d.branches(c, last, tested)
	case *syntax.CaseClause:
		for _, item := range c.Items {
			if item.Op == syntax.Break {
				inner := *d
				inner.list(item.Stmts, last, tested)
			}
		}
	case *syntax.BinaryCmd:
		d.binary(c, last, tested)
	}
}

// mayEnable reports whether a statement that decides nothing can be set -e.
func (d *decider) mayEnable(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) > 1 && c.Args[0].Lit() == "set" && len(c.Assigns) == 0
}

func (d *decider) branches(c *syntax.IfClause, last, tested bool) {
	for ; c != nil; c = c.Else {
		inner := *d
		inner.list(c.Then, last, tested)
	}
}

func (d *decider) binary(c *syntax.BinaryCmd, last, tested bool) {
	switch c.Op {
	case syntax.AndStmt:
		if last {
			d.stmt(c.X, true, true)
		}
		d.stmt(c.Y, last, tested)
	case syntax.OrStmt:
		d.stmt(c.Y, last, tested)
	default: // a pipe; its parts run in shells of their own
		if d.pipefail {
			from := *d
			from.stmt(c.X, last, tested)
		}
		to := *d
		to.stmt(c.Y, last, tested)
	}
}

func (d *decider) call(c *syntax.CallExpr, decides bool) {
	if decides {
		d.marked[c] = true
	}
	if len(c.Args) == 0 || c.Args[0].Lit() != "set" || len(c.Assigns) > 0 {
		return
	}
	for i := 1; i < len(c.Args); i++ {
		option := c.Args[i].Lit()
		if len(option) < 2 || option[0] != '-' && option[0] != '+' || option[1] == '-' {
			return
		}
		on := option[0] == '-'
		if strings.Contains(option, "e") {
			d.errexit = on
		}
		if strings.HasSuffix(option, "o") && i+1 < len(c.Args) {
			i++
			switch c.Args[i].Lit() {
			case "errexit":
				d.errexit = on
			case "pipefail":
				d.pipefail = on
			}
		}
	}
}

// handing are programs and commands of the shell that end with the status of the command
// that they start, or not with 0.
var handing = []string{
	"bash", "builtin", "chronic", "command", "dash", "doas", "env", "eval", "exec", "ionice", "nice", "nohup", "rbash", "sh", "stdbuf", "sudo", "time", "timeout", "unbuffer",
}

// settleDecisive leaves none decisive where more than the text decides which commands run,
// and none of several equal commands of which one is not: a record of what was executed
// does not tell them apart.
func (a *analyser) settleDecisive() {
	all := a.facts.Commands
	for i := range all {
		if !all[i].Decisive {
			continue
		}
		all[i].Decisive = !a.facts.Dynamic && !a.trapped && !slices.ContainsFunc(all, func(c Command) bool {
			return !c.Decisive && c.Name == all[i].Name && slices.Equal(c.Argv, all[i].Argv)
		})
	}
}
