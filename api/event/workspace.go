package event

import (
	"agentctl.dev/agentctl/api/message"
)

// WorkspaceSnapshot records the state of the files: before the first program of a run,
// and after a step in which a call may have changed them.
type WorkspaceSnapshot struct {
	// Snapshot is the blob that lists path, mode and hash of every file; that of a step
	// lists what differs from the state before.
	Snapshot string `json:"snapshot"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`
	// Step after which the files were as listed; absent before the first program.
	Step int `json:"step,omitempty"`
	// Changed counts the paths that differ from the state before; Unkept those of them
	// whose contents are not kept, because they are too large or too many.
	Changed int `json:"changed,omitempty"`
	Unkept  int `json:"unkept,omitempty"`
	// Kept are the bytes of contents that were stored for this state.
	Kept int64 `json:"kept,omitempty"`
	// Steps says that the states after steps are recorded, too; absent in runs of earlier
	// versions.
	Steps bool `json:"steps,omitempty"`
	// Error says why the state after a step is not known; "" when it is.
	Error string `json:"error,omitempty"`
}

// WorkspacePatch records what a run changed.
type WorkspacePatch struct {
	Files []FileChange `json:"files"`
	// Diff is the blob that holds the unified diff.
	Diff string `json:"diff,omitempty"`
	// Change is the blob from which exactly this change can be applied.
	Change string `json:"change,omitempty"`
	// Summary counts what changed; absent where nothing did, and in runs of earlier versions.
	Summary *DiffSummary `json:"summary,omitempty"`
	// Omitted is how many changed files are not in Files, because there are too
	// many; Change holds all of them.
	Omitted int `json:"omitted,omitempty"`
	// Error says why what the run changed is not completely known; "" when it is.
	// Such a change is not applied.
	Error string `json:"error,omitempty"`
}

// WorkspaceApplied records that the change of a run was applied to the source folder: by the
// run itself when it has succeeded, as apply: Auto of its Workspace demands, or by a person
// after its end. The latter follows run.finished.
type WorkspaceApplied struct {
	// Source is the folder that has the change now.
	Source string `json:"source"`
	// Files is the number of files that were changed there.
	Files int `json:"files"`
	// Already is true if the folder had the change before, as after a crash between
	// the change and this event.
	Already bool `json:"already,omitempty"`
	// By is who has applied it after the end of the run, for example "jane@pts/3"; "" is
	// the run itself.
	By string `json:"by,omitempty"`
	// Change is the blob of the change, as in workspace.patch.
	Change string `json:"change,omitempty"`
}

// RunReverted records that a run which had ended was taken back to a message, by a person:
// the messages from there on are out of the conversation, and the files are as they were.
// With the next turn that is permanent; until then it can be undone.
type RunReverted struct {
	// To is the first message that is taken back.
	To string `json:"to"`
	// Undo takes back the newest revert instead, which was to To.
	Undo bool `json:"undo,omitempty"`
	// Files is the blob of the state of the files now; "" if no program had run.
	Files string `json:"files,omitempty"`
	// Changed is the number of files that were changed.
	Changed int `json:"changed"`
	// By is who has done it, for example "jane@pts/3".
	By string `json:"by"`
}

// DiffSummary counts what a run has changed. Lines are those of texts.
type DiffSummary struct {
	Files        int `json:"files"`
	Added        int `json:"added"`
	Modified     int `json:"modified"`
	Deleted      int `json:"deleted"`
	LinesAdded   int `json:"linesAdded"`
	LinesRemoved int `json:"linesRemoved"`
}

// FileChange is one changed file.
type FileChange struct {
	// Path relative to the source folder, with slashes.
	Path string `json:"path"`
	// Change is added, modified or deleted.
	Change string `json:"change"`
}

// EgressConnection is one connection that a contained tool asked for, recorded when
// it has ended. A CONNECT tunnel is one; so is each request of plain HTTP that
// goes to another server.
type EgressConnection struct {
	// Tools that share the network the connection came from; the call, in the
	// envelope, is set where only one was running.
	Tools []string `json:"tools"`
	// Host and Port as the tool wrote them, in lower case and without a final dot.
	Host string `json:"host"`
	Port int    `json:"port"`
	// Address that was dialled; "" when nothing was.
	Address string `json:"address,omitempty"`
	// Decision is allow or deny; Rule is the entry of spec.network.allow that
	// matched, or what forbade it.
	Decision message.Action `json:"decision"`
	Rule     string         `json:"rule,omitempty"`
	// Sent and Received are bytes as the tool sees it.
	Sent       int64 `json:"sent"`
	Received   int64 `json:"received"`
	DurationMs int64 `json:"durationMs"`
	// Error is why an allowed connection failed or was cut; "" when it did not.
	Error string `json:"error,omitempty"`
}
