package embedded

import (
	"context"
	"errors"
	"time"
)

const (
	// flush is how long the last answers may take to leave.
	flush = 100 * time.Millisecond
	// stopPatience bounds a stop.
	stopPatience = 15 * time.Second
)

// Stop ends the server: requests in progress are answered, watches are closed,
// the database is closed, the folder is released. Safe to call more than once.
func (s *Server) Stop() error {
	var err error
	s.stop.Do(func() { err = s.shutdown() })
	return err
}

func (s *Server) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	s.stopping.Store(true)
	s.activity.stop()
	var errs []error
	if s.cancel != nil {
		s.cancel()
		select {
		case <-s.api: // requests and watches have ended
		case <-ctx.Done():
			errs = append(errs, errors.New("stop the API server: its requests do not end"))
		}
		short, cancel := context.WithTimeout(ctx, flush)
		if s.http.Shutdown(short) != nil {
			_ = s.http.Close() // idle connections can be closed
		}
		cancel()
	} else if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	if s.database != nil {
		s.database.close()
	}
	if len(errs) == 0 && s.cancel != nil {
		s.wg.Wait()
	}
	if s.audit != nil {
		s.audit.Shutdown()
	}
	if s.events != nil {
		errs = append(errs, s.events.Close())
	}
	errs = append(errs, s.folder.release())
	return errors.Join(errs...)
}
