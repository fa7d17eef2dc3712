// Package delivery sends an item to its target once, whatever the target answers.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentctl.dev/agentctl/runner/publish/item"
)

// Item is what is sent.
type Item struct {
	Target item.Target
	// Key is also in the Text, as a hidden line.
	Key string
	// Title of a pull request; Text of it, or of a comment.
	Title, Text string
	// Payload of a Webhook.
	Payload []byte
	// Since is before the item was sent for the first time.
	Since time.Time
	// Files are what a pull request changes.
	Files []File
}

// File is a file as a pull request changes it.
type File struct {
	Path string
	// Old is the hash of what the run began with, "sha256:" and hex digits; "" where there
	// was no file.
	Old string
	// Deleted files have no Content.
	Deleted    bool
	Executable bool
	Content    []byte
}

// Sender is the API of a kind of target.
type Sender interface {
	// Find returns the URL of the item, if the target has it.
	Find(ctx context.Context, it *Item) (url string, found bool, err error)
	// Send makes it, and returns its URL.
	Send(ctx context.Context, it *Item) (url string, err error)
}

// Error is an answer of a target, or why there is none.
type Error struct {
	// Status is 0 where there is no answer.
	Status int
	// Again says that the same request may succeed later; After is when, if it is known.
	Again bool
	After time.Duration
	Text  string
	// Said is the message of the target.
	Said string
}

func (e *Error) Error() string { return e.Text }

// Bounds of a delivery.
const (
	attempts = 4
	// maxWait is the longest time that a target may ask to wait.
	maxWait = time.Minute
	// itemTime bounds all attempts for one item.
	itemTime = 4 * time.Minute
	pause    = time.Second
)

// Outcome is how a delivery ended.
type Outcome struct {
	URL string
	// Found is set where the target had the item before.
	Found bool
}

// Deliver sends an item, unless the target has it. Before each attempt the target is asked:
// an answer that was lost does not make two of it.
//
//	answer                                   what follows
//	2xx                                      the end
//	408, 409, 429, 5xx, 403 of a rate limit  after the time that the target says, at most a minute, another attempt
//	none, or one that is cut                 after a pause, another attempt
//	any other                                an error
func Deliver(ctx context.Context, s Sender, it *Item, sleep func(context.Context, time.Duration) error) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, itemTime)
	defer cancel()
	tried := false
	for n := 1; ; n++ {
		url, found, err := s.Find(ctx, it)
		if err == nil && found {
			return Outcome{URL: url, Found: !tried}, nil
		}
		if err == nil {
			tried = true
			if url, err = s.Send(ctx, it); err == nil {
				return Outcome{URL: url}, nil
			}
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Again {
			return Outcome{}, err
		}
		if e.After > maxWait {
			return Outcome{}, fmt.Errorf("%w; it asks to wait for %s", err, e.After.Round(time.Second))
		}
		if n == attempts {
			return Outcome{}, fmt.Errorf("%w; after %d attempts", err, n)
		}
		if slept := sleep(ctx, max(e.After, pause<<(n-1))); slept != nil {
			return Outcome{}, fmt.Errorf("%w; %w", err, slept)
		}
	}
}
