package storytest

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"agentctl.dev/agentctl/runner/publish/forgetest"
)

// forgeKey is where a story keeps its forge.
type forgeKey struct{}

// forge is a forge for agents that publish:
//
//	forge start [FILE...]                     starts it, sets $FORGE to its URL and $FORGE_TOKEN, and replaces @FORGE@ in files
//	forge file NAME TEXT                      a file of the branch main
//	forge fail METHOD PATH STATUS [done|cut]  the next such request gets another answer
//	forge dump                                writes comments.txt, hooks.txt, pulls.txt and sent.txt
func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: forge start|file|fail|dump ...")
	}
	if args[0] == "start" {
		startForge(ts, args[1:])
		return
	}
	f, ok := ts.Value(forgeKey{}).(**forgetest.Forge)
	if !ok || *f == nil {
		ts.Fatalf("forge start comes first")
	}
	switch {
	case args[0] == "file" && len(args) == 3:
		(*f).Files[args[1]] = args[2] + "\n"
	case args[0] == "fail" && len(args) >= 4:
		status, err := strconv.Atoi(args[3])
		ts.Check(err)
		how := append(args, "")[4]
		(*f).Fail(forgetest.Fault{Method: args[1], Path: args[2], Status: status, Done: how == "done", Cut: how == "cut", Body: `{"message":"out of order"}`})
	case args[0] == "dump":
		text := func(v any) string {
			b, err := json.MarshalIndent(v, "", " ")
			ts.Check(err)
			return string(b) + "\n"
		}
		for name, content := range map[string]string{
			"comments.txt": strings.Join((*f).Comments(), "\n=====\n"), "hooks.txt": text((*f).Hooks()), "pulls.txt": text((*f).Pulls()), "sent.txt": strings.Join((*f).Requests(), "\n") + "\n",
		} {
			ts.Check(os.WriteFile(ts.MkAbs(name), []byte(content), 0o600))
		}
	default:
		ts.Fatalf("forge %s: unknown", strings.Join(args, " "))
	}
}

func startForge(ts *testscript.TestScript, files []string) {
	kept, ok := ts.Value(forgeKey{}).(**forgetest.Forge)
	if !ok {
		ts.Fatalf("this test has no place for a forge")
	}
	*kept = forgetest.New()
	ts.Defer((*kept).Close)
	ts.Setenv("FORGE", (*kept).URL)
	ts.Setenv("FORGE_TOKEN", forgetest.Token)
	for _, name := range files {
		text := strings.ReplaceAll(ts.ReadFile(name), "@FORGE@", (*kept).URL)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// Forge prepares a story for the command forge.
func Forge(env *testscript.Env) {
	var f *forgetest.Forge
	env.Values[forgeKey{}] = &f
}
