// Package pagetest looks at rendered pages in a real browser. It is a module of its own, so that the program does not depend on what drives the browser.
// `make page` renders the pages and runs it.
package pagetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// view is how somebody looks at a page.
type view struct {
	name   string
	width  int64
	height int64
	scheme string
}

var views = []view{{"desktop-light", 1200, 900, "light"}, {"desktop-dark", 1200, 900, "dark"}, {"phone-light", 360, 740, "light"}, {"phone-dark", 360, 740, "dark"}}

// folder is a variable of the environment that `make page` sets.
func folder(t *testing.T, variable string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Fatalf("%s is not set: run make page", variable)
	}
	return dir
}

// chromium is the one browser of all tests; a test has a tab.
var chromium context.Context

func TestMain(m *testing.M) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	var end context.CancelFunc
	chromium, end = chromedp.NewContext(allocator)
	if err := chromedp.Run(chromium); err != nil {
		fmt.Fprintln(os.Stderr, "start Chromium, which must be installed:", err)
		os.Exit(1)
	}
	code := m.Run()
	end()
	stop()
	os.Exit(code)
}

// tab opens a tab of the browser for a test.
func tab(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// open shows a page. It returns what the page asked the network for and what went wrong in it, as far as it is known
// when they are called.
func open(t *testing.T, ctx context.Context, v view, url string) (requests, errors func() []string) {
	t.Helper()
	var mu sync.Mutex
	var asked, wrong []string
	chromedp.ListenTarget(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			asked = append(asked, e.Request.URL)
		case *runtime.EventExceptionThrown:
			wrong = append(wrong, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
				wrong = append(wrong, e.Entry.Text)
			}
		}
	})
	err := chromedp.Run(ctx, network.Enable(), log.Enable(), chromedp.EmulateViewport(v.width, v.height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}}),
		chromedp.Navigate(url), chromedp.WaitReady("body"))
	if err != nil {
		t.Fatal(err)
	}
	copied := func(all *[]string) func() []string {
		return func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(*all) }
	}
	return copied(&asked), copied(&wrong)
}

// evaluate returns what a script gives.
func evaluate[T any](t *testing.T, ctx context.Context, script string) (value T) {
	t.Helper()
	if err := chromedp.Run(ctx, chromedp.Evaluate(script, &value)); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return value
}

// screenshot writes what is seen into the folder SCREENSHOTS, if that is set: the pictures of the documents are made so.
func screenshot(t *testing.T, ctx context.Context, name string, v view) {
	t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	err := chromedp.Run(ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		picture, err := page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(70).Do(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name+"-"+v.name+".webp"), picture, 0o644)
	}))
	if err != nil {
		t.Fatal(err)
	}
}

func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	dir := folder(t, "PAGES")
	found, err := filepath.Glob(filepath.Join(dir, "*", "report.html"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no pages in %s: %v", dir, err)
	}
	for _, path := range found {
		all[filepath.Base(filepath.Dir(path))] = "file://" + path
	}
	return all
}

func TestPagesAskForNothingFitTheScreenAndHaveNoErrors(t *testing.T) {
	for name, url := range pages(t) {
		for _, v := range views {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				ctx := tab(t)
				requests, wrong := open(t, ctx, v, url)
				if title := evaluate[string](t, ctx, "document.querySelector('h1').textContent"); title == "" {
					t.Error("the page has no title")
				}
				if wide := evaluate[int64](t, ctx, "document.documentElement.scrollWidth"); wide > v.width {
					t.Errorf("the page is %d wide on a screen of %d", wide, v.width)
				}
				back := evaluate[string](t, ctx, "getComputedStyle(document.body).backgroundColor")
				if dark := back == "rgb(13, 17, 23)"; dark != (v.scheme == "dark") {
					t.Errorf("the background is %s in scheme %s", back, v.scheme)
				}
				for _, r := range requests() {
					if r != url && !strings.HasPrefix(r, "data:") {
						t.Errorf("the page asks for %s", r)
					}
				}
				if all := wrong(); len(all) > 0 {
					t.Errorf("errors: %q", all)
				}
				screenshot(t, ctx, "report-"+name, v)
			})
		}
	}
}

func TestFiltersAreInTheAddress(t *testing.T) {
	url := pages(t)["faulty"]
	ctx := tab(t)
	_, wrong := open(t, ctx, views[0], url)
	shown := func() int { return evaluate[int](t, ctx, "document.querySelectorAll('.req:not([hidden])').length") }
	all := shown()
	choose := func(field, value string) {
		evaluate[bool](t, ctx, fmt.Sprintf(`(() => { const f = document.querySelector('[name=%s]'); f.value = %q; f.dispatchEvent(new Event('input', {bubbles: true})); return true })()`, field, value))
	}
	choose("verdict", "non-conformant")
	red := shown()
	if red == 0 || red >= all {
		t.Errorf("%d of %d requirements are non-conformant", red, all)
	}
	choose("text", "affinity")
	both := shown()
	address := evaluate[string](t, ctx, "location.href")
	if !strings.HasSuffix(address, "#verdict=non-conformant&text=affinity") || both == 0 || both >= red {
		t.Errorf("%s shows %d of %d", address, both, red)
	}
	if said := evaluate[string](t, ctx, "document.getElementById('count').textContent"); said != fmt.Sprintf("%d of %d requirements", both, all) {
		t.Errorf("the page says %q", said)
	}
	// Everyone who is sent the address sees the same.
	other := tab(t)
	open(t, other, views[0], address)
	if n := evaluate[int](t, other, "document.querySelectorAll('.req:not([hidden])').length"); n != both {
		t.Errorf("the address shows %d requirements elsewhere, %d here", n, both)
	}
	evaluate[bool](t, ctx, "(document.querySelector('button[type=reset]').click(), true)")
	if err := chromedp.Run(ctx, chromedp.Poll("document.querySelectorAll('.req:not([hidden])').length == "+fmt.Sprint(all), nil)); err != nil {
		t.Errorf("after Clear: %v", err)
	}
	// A link to a requirement opens it.
	evaluate[bool](t, ctx, "(location.hash = '#alloc-upper-band-first', true)")
	if err := chromedp.Run(ctx, chromedp.Poll("document.getElementById('alloc-upper-band-first').open", nil), chromedp.WaitVisible("#alloc-upper-band-first svg.bands")); err != nil {
		t.Errorf("a link to a requirement: %v", err)
	}
	if all := wrong(); len(all) > 0 {
		t.Errorf("errors: %q", all)
	}
	choose("lang", "ja")
	if n := shown(); n != all {
		t.Errorf("in Japanese %d requirements are shown, of %d", n, all)
	}
	choose("verdict", "non-conformant")
	if n := shown(); n != red {
		t.Errorf("in Japanese %d requirements are non-conformant, %d in English", n, red)
	}
	choose("verdict", "")
	if said := evaluate[string](t, ctx, "document.querySelector('#alloc-upper-band-first .statement').innerText"); !strings.Contains(said, "帯域") || strings.Contains(said, "band") {
		t.Errorf("in Japanese the page says %q", said)
	}
	screenshot(t, ctx, "report-japanese", views[0])
	if address := evaluate[string](t, ctx, "location.href"); !strings.HasSuffix(address, "lang=ja") {
		t.Errorf("the language is not in the address %s", address)
	}
	if broken := evaluate[[]string](t, ctx, "[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href').slice(1)).filter(id => !document.getElementById(id))"); len(broken) > 0 {
		t.Errorf("links that lead nowhere: %q", broken)
	}
}

// openSome opens some requirements of each kind with all that is in them, because nothing looks at what is closed. It
// removes the others, which are alike. axe looks at each element for itself, and at ten thousand for most of a minute.
const openSome = `(() => {
	const some = new Set(['bad', 'blocked', 'known', 'good', 'na'].flatMap(c => [...document.querySelectorAll('.req > summary .' + c)].slice(0, 6).map(s => s.closest('.req'))))
	document.querySelectorAll('.req').forEach(r => some.has(r) || r.remove())
	some.forEach(r => { r.open = true; r.querySelectorAll('details').forEach(d => d.open = true) })
	document.querySelectorAll('main > section > details').forEach(d => d.open = true)
	return some.size > 5
})()`

// seriousViolations fails the test for what axe finds on a page that keeps people out.
func seriousViolations(t *testing.T, ctx context.Context) {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join(folder(t, "AXE"), "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	evaluate[any](t, ctx, string(axe)+"; true")
	var found string
	if err := chromedp.Run(ctx, chromedp.Evaluate("axe.run().then(r => JSON.stringify(r.violations.map(v => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html)}))))", &found,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })); err != nil {
		t.Fatal(err)
	}
	var violations []struct {
		ID, Impact, Help string
		Nodes            []string
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		t.Fatal(err)
	}
	for _, violation := range violations {
		t.Logf("%s (%s): %s %q", violation.ID, violation.Impact, violation.Help, violation.Nodes)
		if violation.Impact == "serious" || violation.Impact == "critical" {
			t.Errorf("%s", violation.ID)
		}
	}
}

func TestPagesAreAccessible(t *testing.T) {
	for name, url := range pages(t) {
		for _, v := range views {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				ctx := tab(t)
				open(t, ctx, v, url)
				if !evaluate[bool](t, ctx, openSome) {
					t.Error("the page has fewer than six requirements")
				}
				seriousViolations(t, ctx)
			})
		}
	}
}

// unspoken are the words of a page that are not in a language, and what of its language is not said.
const unspoken = `(language => {
	const wrong = []
	if (document.documentElement.lang !== language) wrong.push('html has the language ' + document.documentElement.lang)
	document.querySelectorAll('[data-w]').forEach(e => {
		if (e.textContent !== words[language][e.dataset.w]) wrong.push(e.outerHTML)
	})
	document.querySelectorAll('[data-l]').forEach(e => {
		if (e.getAttribute('aria-label') !== words[language][e.dataset.l]) wrong.push(e.outerHTML.slice(0, 200))
	})
	document.querySelectorAll('.t').forEach(e => {
		const shown = [...e.querySelectorAll(':scope > [lang]')].filter(s => getComputedStyle(s).display !== 'none').map(s => s.lang)
		if (shown.length !== 1 || shown[0] !== language) wrong.push(e.outerHTML.slice(0, 200))
	})
	return wrong.slice(0, 5)
})(%q)`

func TestPagesSpeakThreeLanguages(t *testing.T) {
	url := pages(t)["faulty"]
	for _, language := range []string{"ja", "zh", "en"} {
		for _, v := range []view{views[0], views[3]} {
			t.Run(language+"/"+v.name, func(t *testing.T) {
				ctx := tab(t)
				_, wrong := open(t, ctx, v, url+"#lang="+language)
				if bad := evaluate[[]string](t, ctx, fmt.Sprintf(unspoken, language)); len(bad) > 0 {
					t.Errorf("not in the language of the page: %q", bad)
				}
				title := evaluate[string](t, ctx, "document.title")
				if verdict := map[string]string{"en": ": non-conformant", "ja": ": 不適合", "zh": ": 不符合"}[language]; !strings.HasSuffix(title, verdict) {
					t.Errorf("the title is %q", title)
				}
				if !evaluate[bool](t, ctx, openSome) {
					t.Error("the page has fewer than six requirements")
				}
				if wide := evaluate[int64](t, ctx, "document.documentElement.scrollWidth"); wide > v.width {
					t.Errorf("the page is %d wide on a screen of %d", wide, v.width)
				}
				if all := wrong(); len(all) > 0 {
					t.Errorf("errors: %q", all)
				}
				if language != "en" {
					seriousViolations(t, ctx) // TestPagesAreAccessible looks at English
				}
			})
		}
	}
}

// A page that has spoken another language speaks English again.
func TestThePageSpeaksEnglishAgain(t *testing.T) {
	ctx := tab(t)
	open(t, ctx, views[0], pages(t)["faulty"])
	const text = "document.title + document.querySelector('header').textContent + document.querySelector('main').textContent"
	before := evaluate[string](t, ctx, text)
	for _, language := range []string{"zh", "ja", "en"} {
		if evaluate[bool](t, ctx, fmt.Sprintf(`(() => { const f = document.querySelector('[name=lang]'); f.value = %q; f.dispatchEvent(new Event('input', {bubbles: true})); return true })()`, language)); language != "en" {
			if now := evaluate[string](t, ctx, text); now == before {
				t.Errorf("in %s the page says the same", language)
			}
		}
	}
	if after := evaluate[string](t, ctx, text); after != before {
		at := 0
		for at < min(len(before), len(after)) && before[at] == after[at] {
			at++
		}
		t.Errorf("%q became %q", before[max(0, at-50):min(len(before), at+100)], after[max(0, at-50):min(len(after), at+100)])
	}
	if bad := evaluate[[]string](t, ctx, fmt.Sprintf(unspoken, "en")); len(bad) > 0 {
		t.Errorf("not in English: %q", bad)
	}
}

// only leaves one requirement on the page, opened with all that is in it, and shows its first picture.
func only(t *testing.T, ctx context.Context, id string) {
	t.Helper()
	evaluate[bool](t, ctx, fmt.Sprintf(`(() => {
		document.querySelectorAll('.req').forEach(r => r.id === %q ? r.open = true : r.remove())
		document.querySelectorAll('#%s details').forEach(d => d.open = true)
		document.querySelector('#%[2]s figure').scrollIntoView()
		return true
	})()`, id, id))
}

func TestTimelinesFitTheScreenAndKeepTheSizeOfTheirText(t *testing.T) {
	const id = "proxy-affinity-backend-lost"
	for _, v := range views {
		t.Run(v.name, func(t *testing.T) {
			ctx := tab(t)
			_, wrong := open(t, ctx, v, pages(t)["conformant"])
			only(t, ctx, id)
			if err := chromedp.Run(ctx, chromedp.WaitVisible("#"+id+" .timeline > svg")); err != nil {
				t.Fatal(err)
			}
			if wide := evaluate[int64](t, ctx, "document.documentElement.scrollWidth"); wide > v.width {
				t.Errorf("the page is %d wide on a screen of %d", wide, v.width)
			}
			if small := evaluate[[]string](t, ctx, "[...document.querySelectorAll('.timeline text')].filter(e => e.getBoundingClientRect().height < 10).map(e => e.textContent)"); len(small) > 0 {
				t.Errorf("text that is too small: %q", small)
			}
			if hidden := evaluate[[]string](t, ctx, "[...document.querySelectorAll('.timeline rect')].filter(e => { const b = e.getBoundingClientRect(); return b.width < 5 || b.height < 1 }).map(e => e.outerHTML)"); len(hidden) > 0 {
				t.Errorf("segments that cannot be seen: %q", hidden)
			}
			if all := wrong(); len(all) > 0 {
				t.Errorf("errors: %q", all)
			}
			screenshot(t, ctx, "report-timeline", v)
			seriousViolations(t, ctx)
		})
	}
}
