package approval

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"agentctl.dev/agentctl/api/message"
)

// fileLimit bounds a file of approvals.
const fileLimit = 1 << 20

var hashLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
})

func readHashes(name string) (map[string]int, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	// A pipe would block before anything has started.
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseHashes(f)
}

func parseHashes(r io.Reader) (map[string]int, error) {
	limited := &io.LimitedReader{R: r, N: fileLimit + 1}
	lines := bufio.NewScanner(limited)
	hashes := map[string]int{}
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if !hashLine().MatchString(text) {
			return nil, fmt.Errorf("line %d is not a call hash: expected sha256: and 64 hex digits", n)
		}
		hashes[text]++
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("it is larger than %d bytes", fileLimit)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return hashes, nil
}

// Listed approves calls whose hash is in a file, each line once.
type Listed struct {
	name      string
	otherwise Headless

	// mu guards left; the runs of one tree share both.
	mu   *sync.Mutex
	left map[string]int
}

// Ask approves a listed call and uses its line up.
func (l *Listed) Ask(ctx context.Context, q message.Question) (message.Answer, error) {
	if err := ctx.Err(); err != nil {
		return message.Answer{}, context.Cause(ctx)
	}
	l.mu.Lock()
	left := l.left[q.Decision.Hash]
	if q.Unknown {
		left = 0 // its line was for the first time
	}
	if left > 0 {
		l.left[q.Decision.Hash]--
	}
	l.mu.Unlock()
	if left > 0 {
		return message.Answer{State: message.Approved, By: "--approve " + l.name}, nil
	}
	n := l.otherwise
	n.why = "not in " + l.name
	return n.Ask(ctx, q)
}
