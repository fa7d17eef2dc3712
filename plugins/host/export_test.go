package host

import "time"

// SetWaits changes how long a cancelled call is waited for; 0 leaves a wait as it is.
func (p *Plugin) SetWaits(asIs, letGo time.Duration) {
	if asIs > 0 {
		p.waits.asIs = asIs
	}
	if letGo > 0 {
		p.waits.letGo = letGo
	}
}

// DropConnection breaks the connection as a dying host would.
func (p *Plugin) DropConnection() { _ = p.conn.Close() }
