package telemetry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// The variables of OpenTelemetry that are honoured. Where <SIGNAL> is TRACES or METRICS,
// that variable overrides the one for both.
const (
	envDisabled   = "OTEL_SDK_DISABLED"
	envService    = "OTEL_SERVICE_NAME"
	envResource   = "OTEL_RESOURCE_ATTRIBUTES"
	envContent    = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	envInterval   = "OTEL_METRIC_EXPORT_INTERVAL"
	envParent     = "TRACEPARENT"
	envTraceState = "TRACESTATE"
	envOTLP       = "OTEL_EXPORTER_OTLP_"
)

const (
	// defaultTimeout of a request, and defaultInterval between two reports of metrics.
	defaultTimeout  = 10 * time.Second
	defaultInterval = time.Minute
	// maxResource bounds the attributes of the resource, maxHeaders those of a request.
	maxResource, maxHeaders = 128, 64
)

// settings are what the environment asks for.
type settings struct {
	// traces and metrics are where they are sent; nil: nowhere.
	traces, metrics *endpoint
	interval        time.Duration
	content         bool
	parent          parent
	resource        []attribute
}

// endpoint is where a signal is sent.
type endpoint struct {
	url     string
	headers http.Header
	timeout time.Duration
	gzip    bool
	tls     *tls.Config // nil is that of the system
}

// shown is the address for people, without a password.
func (e *endpoint) shown() string {
	u, err := url.Parse(e.url)
	if err != nil {
		return "the collector" // it was parsed before
	}
	u.RawQuery = ""
	return u.Redacted()
}

// parent is the span of the program that has started this one; the zero value is none.
type parent struct {
	trace, span []byte
	state       string
	// unsampled means that the caller records no spans, and neither does this program.
	unsampled bool
}

// read reads the environment. The errors name the variables that are not honoured; what
// they are about is off.
func read(getenv func(string) string, version, instance string) (settings, []error) {
	s := settings{interval: defaultInterval}
	if isTrue(getenv(envDisabled)) {
		return s, nil
	}
	var errs []error
	for _, signal := range []struct {
		name, path string
		to         **endpoint
	}{{"TRACES", "v1/traces", &s.traces}, {"METRICS", "v1/metrics", &s.metrics}} {
		e, err := readEndpoint(getenv, signal.name, signal.path)
		if err != nil {
			errs = append(errs, err)
		}
		*signal.to = e
	}
	if s.traces == nil && s.metrics == nil {
		return s, errs
	}
	s.content = isTrue(getenv(envContent))
	if text := getenv(envInterval); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms < 1 {
			errs = append(errs, fmt.Errorf("%s is a number of milliseconds, not %q: %s is used", envInterval, text, defaultInterval))
		} else {
			s.interval = time.Duration(ms) * time.Millisecond
		}
	}
	var err error
	if s.parent, err = readParent(getenv(envParent)); err != nil {
		errs = append(errs, err)
	} else if s.parent.trace != nil {
		s.parent.state = getenv(envTraceState)
	}
	if s.parent.unsampled {
		s.traces = nil
	}
	if s.resource, err = readResource(getenv, version, instance); err != nil {
		errs = append(errs, err)
	}
	return s, errs
}

func isTrue(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "true") }

// readEndpoint returns nil for a signal that is sent nowhere.
func readEndpoint(getenv func(string) string, signal, path string) (*endpoint, error) {
	get := func(name string) (text, from string) {
		if text := strings.TrimSpace(getenv(envOTLP + signal + "_" + name)); text != "" {
			return text, envOTLP + signal + "_" + name
		}
		return strings.TrimSpace(getenv(envOTLP + name)), envOTLP + name
	}
	address, from := get("ENDPOINT")
	exporter := "OTEL_" + signal + "_EXPORTER"
	switch chosen := strings.TrimSpace(getenv(exporter)); {
	case address == "" || chosen == "none":
		return nil, nil //nolint:nilnil // it is sent nowhere
	case chosen != "" && chosen != "otlp":
		return nil, fmt.Errorf("%s=%s is not supported, only otlp and none", exporter, chosen)
	}
	if protocol, from := get("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("%s=%s is not supported, only http/protobuf", from, protocol)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not a URL like http://localhost:4318", from) // it may hold a password
	}
	if from == envOTLP+"ENDPOINT" {
		u = u.JoinPath(path)
	}
	e := &endpoint{url: u.String(), timeout: defaultTimeout, headers: http.Header{}}
	if text, from := get("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms < 1 {
			return nil, fmt.Errorf("%s is a number of milliseconds, not %q", from, text)
		}
		e.timeout = time.Duration(ms) * time.Millisecond
	}
	switch text, from := get("COMPRESSION"); text {
	case "", "none":
	case "gzip":
		e.gzip = true
	default:
		return nil, fmt.Errorf("%s=%s is not supported, only gzip and none", from, text)
	}
	headers, from := get("HEADERS")
	if err := e.readHeaders(headers); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if e.tls, err = readTLS(get); err != nil {
		return nil, err
	}
	return e, nil
}

// readHeaders reads "key=value,key=value". The errors do not show values, which are
// credentials.
func (e *endpoint) readHeaders(all string) error {
	pairs, err := readPairs(all, maxHeaders)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if strings.ContainsAny(p.value, "\r\n\x00") || strings.Trim(p.key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") != "" {
			return fmt.Errorf("the header %q cannot be sent", p.key)
		}
		e.headers.Set(p.key, p.value)
	}
	return nil
}

type pair struct{ key, value string }

// readPairs reads "key=value,key=value" with percent-encoded values.
func readPairs(all string, most int) ([]pair, error) {
	var pairs []pair
	for one := range strings.SplitSeq(all, ",") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		key, value, ok := strings.Cut(one, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return nil, errors.New("it is a list of key=value, with commas between them and percent-encoded values")
		}
		if len(pairs) == most {
			return nil, fmt.Errorf("it has more than %d entries", most)
		}
		pairs = append(pairs, pair{key, value})
	}
	return pairs, nil
}

// readTLS returns nil where nothing is demanded.
func readTLS(get func(string) (text, from string)) (*tls.Config, error) {
	authority, from := get("CERTIFICATE")
	own, _ := get("CLIENT_CERTIFICATE")
	key, keyFrom := get("CLIENT_KEY")
	if authority == "" && own == "" && key == "" {
		return nil, nil //nolint:nilnil // the system's own configuration
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		pem, err := os.ReadFile(authority)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate", from, authority)
		}
	}
	if own != "" || key != "" {
		cert, err := tls.LoadX509KeyPair(own, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keyFrom, err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// readParent reads a traceparent of the W3C: version-trace-span-flags. A later version may
// have more behind them.
func readParent(s string) (parent, error) {
	if s = strings.TrimSpace(s); s == "" {
		return parent{}, nil
	}
	bad := fmt.Errorf("%s is not a trace context of the W3C: the run begins a trace of its own", envParent)
	parts := strings.Split(s, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 ||
		strings.Trim(s, "0123456789abcdef-") != "" || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return parent{}, bad
	}
	trace, traceErr := hex.DecodeString(parts[1])
	span, spanErr := hex.DecodeString(parts[2])
	flags, flagsErr := hex.DecodeString(parts[3])
	if traceErr != nil || spanErr != nil || flagsErr != nil {
		return parent{}, bad
	}
	return parent{trace: trace, span: span, unsampled: flags[0]&1 == 0}, nil
}

// readResource describes this program.
func readResource(getenv func(string) string, version, instance string) ([]attribute, error) {
	pairs, err := readPairs(getenv(envResource), maxResource)
	if err != nil {
		err = fmt.Errorf("%s: %w", envResource, err)
	}
	all := map[string]string{}
	for _, p := range pairs {
		all[p.key] = p.value
	}
	service := cmp.Or(getenv(envService), all[attrService], "agentctl")
	delete(all, attrService)
	resource := []attribute{text(attrService, service)}
	for _, p := range []pair{{attrServiceVersion, version}, {attrServiceInstance, instance}} {
		if all[p.key] == "" && p.value != "" {
			resource = append(resource, text(p.key, p.value))
		}
	}
	for _, p := range pairs {
		if value, ok := all[p.key]; ok {
			resource = append(resource, text(p.key, value))
			delete(all, p.key)
		}
	}
	return resource, err
}
