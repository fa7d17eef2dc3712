// Package runner executes agents: it runs, resumes and replays them, and connects the packages that do the work.
//
// START HERE. A run has three parts, in this order; none of them imports another:
//
//   - plan: what was resolved from the manifests. It does not change after it was made.
//   - environment: what the calls work in: files, sandboxes, containers, programs.
//   - execution: the loop with everything that it records, from the first event to the last.
//
// This is one "agentctl run -f manifests/hello", in the order the data flows (run.go):
//
//   - manifest reads the files: YAML documents that know the position of each field.
//   - admission validates them: schema, references, CEL; it reports all mistakes at once.
//     What is admitted is resolved into one plan.
//   - journal stores the run; from here on everything is an event (api/event), and every
//     reader of a run uses one fold (api/view). journal.Feed notifies watchers without
//     delaying the run.
//   - workspace begins to copy the source folder, and tool starts the programs behind the
//     tools, each isolated as its manifest demands: in a sandbox (sandbox, with
//     cmd/agentctl-sandbox) or in a container (sandbox/container), with a network that
//     sandbox/egress serves. All of it happens during the first model request;
//     environment/protect.go closes what no program may touch before the first call.
//   - loop asks a model (one folder below model for each provider; model/provider lists
//     them, model/fallback chooses the next one), a policy (policy, with expr and
//     policy/shell), a person (approval) and a tool (tool; one folder below tool/source for
//     each kind of program, which tool/source/sources lists; plugins/host is the other end
//     of the tool protocol).
//   - answers (approval) and messages to a run come through folders of the run (inbox)
//     until they are in the journal.
//   - secret removes credentials from everything that is written, shown or sent.
//   - at the end workspace lists which files changed, and the journal is closed.
//
// Fork begins a run with the events of another one before a place that moment finds, and with
// the files that workspace has recorded after each step (fork).
//
// Resume continues a run that was killed or suspended, from nothing but its journal. A
// cassette is a journal in one file (cassette); Replay runs the loop with it again and
// needs nothing else.
//
// The tests of agents (agenttest) are runs like any other; Tests is what they need of this
// package.
//
// Programs that execute no run use other packages, and need not link this one:
//
//   - audit verifies and exports what runs have recorded, and signs receipts; audit/trail
//     keeps the audit log of a run next to its journal.
//   - runs lists, reads and follows the runs of a state folder, answers their questions,
//     sends them messages and applies their changes.
//   - connect uses declared tools without a run, and locks manifests.
//   - decisions judges a call without a run, and the recorded calls of a run again, to explain
//     them or by other policies.
//   - templates writes an example of manifests/ as the beginning of somebody's own set;
//     opencode carries a configuration of OpenCode over into one.
//   - publish sends what runs have prepared for publication.
//   - pluginkit creates, calls, tests and packs a tool; policy/shellfacts reports what
//     shell commands do.
//   - keys, model/provider and doctor report on credentials, on model catalogs, and on this host.
//   - mcpserver offers tools to hosts of the Model Context Protocol. With RunOptions.Caller
//     their calls are those of a run, in place of a model (caller).
//   - telemetry sends what runs do to an OpenTelemetry collector, as spans and metrics that
//     it makes from their events.
//   - client talks to a control plane. Where manifests are stored as Kubernetes objects
//     (Declare reads them; manifest.Find finds their files), control follows them and executes
//     their runs with this package (cmd/agentd). A run of files needs neither.
//   - reason.UsageError is the error of all of them for a request that makes no sense;
//     statedir finds the folder they share.
//
// cmd/agentctl uses nothing of this module but these packages and api.
package runner
