package embedded

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func isIdle(a *activity) bool {
	synctest.Wait()
	select {
	case <-a.idle:
		return true
	default:
		return false
	}
}

// ask sends a request of a user that takes some time.
func ask(a *activity, name string, takes time.Duration) {
	h := a.watch(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(takes) }))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	h.ServeHTTP(httptest.NewRecorder(), r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: name})))
}

func TestIdleWhenNobodyAsks(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(a *activity)
		want time.Duration
	}{
		"never asked":            {func(*activity) {}, 10 * time.Minute},
		"asked once":             {func(a *activity) { time.Sleep(9 * time.Minute); ask(a, "jane", time.Second) }, 19*time.Minute + time.Second},
		"a watch":                {func(a *activity) { ask(a, "jane", time.Hour) }, 70 * time.Minute},
		"two watches":            {func(a *activity) { go ask(a, "jane", time.Hour); ask(a, "joe", 2*time.Hour) }, 130 * time.Minute},
		"the server's own watch": {func(a *activity) { go ask(a, user.APIServerUser, time.Hour) }, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				a := newActivity(10*time.Minute, nil)
				a.start()
				defer a.stop()
				c.run(a)
				<-a.idle
				if got := time.Since(begin); got != c.want {
					t.Errorf("idle after %s, want %s", got, c.want)
				}
				time.Sleep(2 * time.Hour) // long-running requests end
			})
		})
	}
}

func TestNotIdleWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		busy.Store(true)
		a := newActivity(time.Minute, busy.Load)
		a.start()
		defer a.stop()
		time.Sleep(time.Hour)
		if isIdle(a) {
			t.Fatal("idle although work goes on")
		}
		busy.Store(false)
		time.Sleep(time.Minute)
		if !isIdle(a) {
			t.Fatal("not idle although nothing goes on")
		}
		ask(a, "jane", time.Second) // one more request after the end does no harm
		time.Sleep(time.Hour)
	})
}

func TestNeverIdleWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newActivity(0, nil)
		a.start()
		ask(a, "jane", time.Second)
		time.Sleep(1000 * time.Hour)
		if isIdle(a) {
			t.Error("idle")
		}
	})
}
