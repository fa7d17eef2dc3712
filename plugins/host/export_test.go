package host

// DropConnection breaks the connection as a dying host would.
func (p *Plugin) DropConnection() { _ = p.conn.Close() }
