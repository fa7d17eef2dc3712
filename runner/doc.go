// Package runner is the front door: it lives a run in this process, and wires the stages that do the work.
//
// START HERE. This is one "agentctl run -f manifests/hello", in the order the data flows:
//
//   - manifest reads the files: YAML documents that know where each field stands.
//   - admission decides whether they may enter: schema, references, CEL; all mistakes at once. What
//     is admitted is resolved into one plan: agent, model, tools, policies.
//   - journal opens the memory of the run; from here on everything is an event (api/event), and
//     everybody who looks at the run reads it through one fold (api/view). Watchers are notified by journal.Feed,
//     which never lets the run wait.
//   - workspace begins to copy the source folder, and tool starts the programs behind the tools, each
//     held as its manifest says: in a sandbox (sandbox, with cmd/agentctl-sandbox) or in a container
//     (sandbox/container), with a network that sandbox/egress serves. All of it is hidden behind the
//     first model request; protect.go closes what no program may touch before the first call.
//   - loop lives the run. It asks a model (one folder below model for each provider; model/httpapi is
//     the HTTP they share, model/provider lists them, model/fallback who is asked next), a policy (policy, over
//     expr and policy/shell), a person (approval) and a tool (tool; one folder below
//     tool/source for each kind of program, which tool/source/sources lists; plugins/host is the other end of the tool protocol).
//   - what others leave for the run while it lives, answers (approval) and messages, lies in folders of
//     it (inbox) until the journal has it.
//   - secret keeps credentials out of everything that is written, shown or sent.
//   - a run that was killed or suspended is taken up by Resume, from nothing but its journal.
//   - at the end workspace says which files changed, and the journal is closed. A cassette is that journal
//     in one file (cassette); Replay lives it again with nothing else.
//
// Whoever lives no run has another door, and need not link this one:
//
//   - runs lists, reads and follows the runs of a state folder, answers their questions, sends them
//     messages and applies their changes.
//   - pluginkit begins, calls, tests and packs a tool; policy/shellfacts reports what shell commands do.
//   - keys, model/provider and doctor describe credentials, the models that providers sell, and this host.
//   - client talks with a control plane. Where manifests are kept as Kubernetes objects (Declare reads
//     them; manifest.Find finds their files), control follows them and lives their runs by this door (cmd/agentd);
//     no run of files needs either.
//   - reason.UsageError is the error of them all for a request that makes no sense; statedir finds the folder they share.
//
// cmd/agentctl uses nothing of ours but these doors and api.
package runner
