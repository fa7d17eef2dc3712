package manifest

import (
	"strings"
)

// The patterns of api/v1alpha1 that people break most, each with what to say.
const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	moneyPattern    = `^[0-9]{1,9}(\.[0-9]{1,6})?$`
	imagePattern    = `^[^@\s]+@sha256:[0-9a-f]{64}$`
	urlPattern      = `^https?://[^\s]+$`
	sha256Pattern   = `^[0-9a-f]{64}$`
	variablePattern = `^[A-Za-z_][A-Za-z0-9_]*$`
	callPattern     = `^[A-Za-z0-9_-]{1,64}$`
	rulePattern     = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
)

// pattern describes what a text that does not match a pattern should be.
func (s *shape) pattern(path, pattern, v string) Finding {
	if strings.Contains(path, ".valueFrom") || strings.HasSuffix(path, ".apiKey") {
		// It may be a credential that was put where its name is expected.
		s.doc.hide(v)
		return s.doc.Errorf(path, "is not the name of an environment variable; the value itself is never written here").
			With("write env: NAME")
	}
	text := Sanitize(short(v))
	switch pattern {
	case durationPattern:
		return s.doc.Errorf(path, "%q is not a duration such as 30s, 15m or 1h30m", text)
	case moneyPattern:
		return s.doc.Errorf(path, `%q is not an amount in US dollars such as "2.00", with at most six decimals`, text)
	case imagePattern:
		return s.doc.Errorf(path, "image %q has no digest: a tag can be moved to another program", text).
			With("write " + strings.SplitN(text, "@", 2)[0] + "@sha256:<64 hex digits>")
	case urlPattern:
		return s.doc.Errorf(path, "%q is not a URL that begins with http:// or https://", text)
	case sha256Pattern:
		return s.doc.Errorf(path, "%q is not a SHA-256 in 64 lower-case hex digits", text)
	case variablePattern:
		return s.doc.Errorf(path, "%q is not a name of letters, digits and _ that does not begin with a digit", text)
	case callPattern:
		return s.doc.Errorf(path, "%q is not a call name: 1 to 64 of A-Z a-z 0-9 _ -", text)
	case rulePattern:
		return s.doc.Errorf(path, "%q is not a rule name: lower-case letters, digits and - between them", text)
	case quantityPattern:
		return s.doc.Errorf(path, "%q is not a quantity such as 512Mi, 2Gi, 1 or 500m", text)
	}
	return s.doc.Errorf(path, "%q does not match %s", text, pattern)
}

// words reports whether a document may hold a plain word that YAML 1.1 reads as
// a boolean. It looks at bytes only: most manifests hold none.
func words(data []byte) bool {
	for i, c := range data {
		switch c {
		case 'y', 'Y', 'n', 'N', 'o', 'O':
		default:
			continue
		}
		if i > 0 && !strings.ContainsRune(" \t\n[{,-", rune(data[i-1])) {
			continue
		}
		end := i
		for end < len(data) && end-i < 4 && (data[end] >= 'a' && data[end] <= 'z' || data[end] >= 'A' && data[end] <= 'Z') {
			end++
		}
		if boolWord(string(data[i:end])) && (end == len(data) || strings.ContainsRune(" \t\r\n]},:#", rune(data[end]))) {
			return true
		}
	}
	return false
}
