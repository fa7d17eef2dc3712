package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentctl.dev/agentctl/plugins/host"
)

// Bounds of a value that a result supplies. What is shorter would be found by chance in
// texts that do not hold it.
const (
	minValue = 16
	maxValue = 16 << 10
)

// CheckVariable refuses a variable that no result may supply, whatever a manifest lists.
func CheckVariable(v host.Variable) error {
	if err := Suppliable(v.Name); err != nil {
		return err
	}
	if err := hideable(v.Value); err != nil {
		return fmt.Errorf("the value %w", err)
	}
	return nil
}

// hideable refuses a value that cannot be hidden without harm: it would be found by chance,
// or could be part of the structure of a journal, such as a field's name. Tokens and what
// is encoded in base64 or hex are hideable.
func hideable(value string) error {
	letters := true
	for _, c := range []byte(value) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return errors.New("holds a character other than printable ASCII without spaces, quotation marks and backslashes: encode it")
		}
		letters = letters && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	}
	switch {
	case len(value) < minValue || len(value) > maxValue:
		return fmt.Errorf("has %d characters: %d to %d can be hidden", len(value), minValue, maxValue)
	case letters:
		return errors.New("has letters only: it cannot be told from a word")
	}
	return nil
}

// unknownTo refuses a value that is not a secret, because the call was given it: to hide the
// id of the run or the path of its files would spoil what is recorded.
func unknownTo(req host.CallRequest, value string) error {
	for _, text := range []string{string(req.Args), req.ID, req.Message, req.Run, req.Key, req.Workspace} {
		if text != "" && (strings.Contains(text, value) || len(text) >= minValue && strings.Contains(value, text)) {
			return errors.New("is no secret: the call was given it, or it holds an id of the call or the path of its files")
		}
	}
	return nil
}

// reserved are the variables by which programs find other programs, libraries, servers and
// certificates: one that is supplied could take over the program that is given it. Those
// that end with * are all that begin so.
var reserved = []string{
	"AGENTCTL_*", "LD_*", "DYLD_*", "GIT_*", "BASH*", "PYTHON*", "PERL*", "RUBY*", "NODE_*", "NPM_CONFIG_*", "OPENSSL_*", "SSL_*", "MALLOC_*", "LC_*", "XDG_*", "LESS*", "PS*",
	"PATH", "HOME", "SHELL", "SHELLOPTS", "ENV", "IFS", "CDPATH", "GLOBIGNORE", "PROMPT_COMMAND", "PWD", "OLDPWD", "TMPDIR", "LANG", "LANGUAGE", "TZ", "TERM", "TERMINFO", "USER", "LOGNAME",
	"EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "SSH_ASKPASS", "SUDO_ASKPASS", "SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG",
	"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY", "CURL_CA_BUNDLE", "CURL_HOME", "REQUESTS_CA_BUNDLE", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES",
	"RES_OPTIONS", "GLIBC_TUNABLES", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "GOFLAGS", "GOTOOLCHAIN", "GOPROXY", "CC", "CXX", "MAKEFLAGS", "RUSTC_WRAPPER",
}

// Suppliable refuses the name of a variable that no result may supply.
func Suppliable(name string) error {
	upper := strings.ToUpper(name)
	at := slices.IndexFunc(reserved, func(r string) bool {
		begin, open := strings.CutSuffix(r, "*")
		return upper == r || open && strings.HasPrefix(upper, begin)
	})
	switch {
	case name == "" || len(name) > 64 || strings.IndexFunc(name, func(r rune) bool { return !named(string(r)) || r == '-' }) >= 0 || name[0] >= '0' && name[0] <= '9':
		return fmt.Errorf("%.100q is no name of a variable: [A-Za-z_][A-Za-z0-9_]*, at most 64 characters", name)
	case at >= 0:
		return fmt.Errorf("%s can decide which programs, libraries or servers a program uses (%s): no result may supply it", name, reserved[at])
	}
	return nil
}
