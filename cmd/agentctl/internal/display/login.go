package display

import (
	"fmt"
	"strings"
	"time"
)

// Login is a login at an MCP server. It has no token to show.
type Login struct {
	Tool, Server, Issuer, State string
	Scopes, Wanted              []string
	Problem                     string
	Since                       time.Time
	Expires                     *time.Time
	Renewable                   bool
}

// LoginList is a table of logins.
type LoginList struct {
	Logins []Login
	// Now is the time from which ages count.
	Now time.Time
}

// Write writes one line a login, and what is wrong below.
func (l LoginList) Write(s *Screen) error {
	rows := [][]string{{"TOOL", "SERVER", "ISSUER", "STATE", "TOKEN", "AGE"}}
	for _, x := range l.Logins {
		rows = append(rows, []string{Line(x.Tool), Line(x.Server), Line(x.Issuer), x.State, x.token(l.Now), age(l.Now.Sub(x.Since))})
	}
	s.print(table(rows))
	for _, x := range l.Logins {
		if x.Problem != "" {
			s.print(Line(x.Tool+": the login has ended: "+x.Problem) + "\n")
		}
		if len(x.Wanted) > 0 {
			s.print(Line(x.Tool+": the server wants further scopes: "+strings.Join(x.Wanted, " ")) + "\n")
		}
	}
	return s.Err()
}

// token says what becomes of the present token.
func (x *Login) token(now time.Time) string {
	switch {
	case x.Renewable:
		return "renewed by runs"
	case x.Expires == nil:
		return "-"
	case x.Expires.Before(now):
		return "expired"
	}
	return "for " + age(x.Expires.Sub(now))
}

// LoggedIn shows a login that was just made.
func LoggedIn(s *Screen, x Login, functions int, now time.Time) error {
	text := fmt.Sprintf("logged in: %s at %s, by %s; %d functions", x.Tool, x.Server, x.Issuer, functions)
	if len(x.Scopes) > 0 {
		text += "; scopes " + strings.Join(x.Scopes, " ")
	}
	if !x.Renewable {
		text += "; the token is not renewed"
		if x.Expires != nil {
			text += ", it is valid " + x.token(now)
		}
	}
	s.print(Line(text) + "\n")
	return s.Err()
}

// Page is a page to log in at.
type Page struct {
	URL, Issuer, Server, Redirect string
	Scopes                        []string
	// Elsewhere is set where the browser is on another machine.
	Elsewhere bool
}

// LoginPage shows where to log in.
func LoginPage(s *Screen, p Page) {
	text := fmt.Sprintf("Log in at %s, for the server %s", p.Issuer, p.Server)
	if len(p.Scopes) > 0 {
		text += ", with the scopes: " + strings.Join(p.Scopes, " ")
	}
	s.print(Line(text) + "\n\n  " + Line(p.URL) + "\n\n")
	if p.Elsewhere {
		s.print(Line("The browser ends at an address that begins with "+p.Redirect+" and cannot be opened. Paste that address here:") + "\n")
		return
	}
	s.print(Line("Open the page in a browser on this machine; it returns to "+p.Redirect+" by itself.") + "\n")
}
