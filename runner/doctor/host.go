package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Need is something of the host that is not containment.
type Need struct {
	// Name is git or proxy.
	Name string `json:"name"`
	// OK is set when it is there, or is not needed.
	OK bool `json:"ok"`
	// Why is what was found, Hint how to get it; "" where it is there.
	Why  string `json:"why"`
	Hint string `json:"hint"`
}

const hostPatience = 5 * time.Second

// needs looks at the programs and the network of the host.
func needs(ctx context.Context) []Need {
	return []Need{git(ctx), proxy(ctx)}
}

// git is needed for a Workspace whose source is git, and by agents that commit.
func git(ctx context.Context) Need {
	n := Need{Name: "git"}
	ctx, cancel := context.WithTimeout(ctx, hostPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		n.Why, n.Hint = "it is not installed: a Workspace with source.git cannot be made", "install git with the package manager of this host"
	case err != nil:
		n.Why = "it does not run: " + err.Error()
	default:
		n.OK, n.Why = true, strings.TrimSpace(string(out))
	}
	return n
}

// proxy tries the proxies that the environment sets: requests to models go through them.
func proxy(ctx context.Context) Need {
	n := Need{Name: "proxy", OK: true, Why: "none is set: requests to models go directly"}
	var found []string
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		set := os.Getenv(name)
		if set == "" {
			continue
		}
		at, shown, err := proxyAddress(set)
		if err == nil {
			err = reached(ctx, at)
		}
		if err != nil {
			n.OK, n.Why = false, fmt.Sprintf("%s: %v", name, err)
			n.Hint = "correct " + name + ", or unset it where requests may go directly; NO_PROXY names hosts that need none"
			return n
		}
		found = append(found, name+" is "+shown)
	}
	if len(found) > 0 {
		n.Why = strings.Join(found, ", ")
	}
	return n
}

// proxyAddress is where a proxy listens, and its address without its password.
func proxyAddress(set string) (at, shown string, err error) {
	if !strings.Contains(set, "://") {
		set = "http://" + set
	}
	u, err := url.Parse(set)
	if err != nil || u.Hostname() == "" {
		return "", "", errors.New("it is not the address of a proxy") // the error of Parse repeats it, and a password with it
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port), u.Redacted(), nil
}

func reached(ctx context.Context, at string) error {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("the proxy at %s cannot be reached: %w", at, err)
	}
	return c.Close()
}
