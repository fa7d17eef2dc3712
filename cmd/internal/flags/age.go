package flags

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Age reads how old something may be: a duration of Go that is longer than 0, or days
// and weeks, such as 30d and 2w.
func Age(text string) (time.Duration, error) {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseUint(number, 10, 16)
			switch {
			case err != nil:
			case n == 0:
				err = errNoTime
			case n > uint64(math.MaxInt64/length):
				err = strconv.ErrRange
			}
			return time.Duration(n) * length, err //nolint:gosec // checked above
		}
	}
	age, err := time.ParseDuration(text)
	if err == nil && age <= 0 {
		err = errNoTime
	}
	return age, err
}

var errNoTime = errors.New("it is not longer than 0")
