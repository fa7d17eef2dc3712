package measure

// The other programs whose decisions are compared.
const (
	openCode = "OpenCode"
	codex    = "Codex"
)
