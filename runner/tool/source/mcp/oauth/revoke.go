package oauth

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// send posts a form with the client's id, and its secret where one is kept, to the place
// where tokens are given back.
func send(ctx context.Context, c *http.Client, k *kept, form url.Values) error {
	if err := confidential(k.RevokeURL); err != nil {
		return err
	}
	form.Set("client_id", k.ClientID)
	if k.ClientSecret != "" && k.InForm {
		form.Set("client_secret", k.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if k.ClientSecret != "" && !k.InForm {
		req.SetBasicAuth(url.QueryEscape(k.ClientID), url.QueryEscape(k.ClientSecret))
	}
	resp, err := c.Do(req)
	if err != nil {
		return fmt.Errorf("give the token of %s back: %w", k.Issuer, err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing more is read
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("give the token of %s back: status %d", k.Issuer, resp.StatusCode)
	}
	return nil
}
