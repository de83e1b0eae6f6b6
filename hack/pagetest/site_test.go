package pagetest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// sitePages are a page of each kind of the website, and a report in it.
var sitePages = map[string]string{
	"overview":       "index.html",
	"implementation": "implementations/kube-apiserver.html",
	"requirement":    "requirements/alloc-range-ipv6-112-108.html",
	"report":         "reports/kube-proxy/v1.37.1/nftables.html",
}

func siteURL(t *testing.T, page string) string {
	return "file://" + filepath.Join(folder(t, "SITE"), filepath.FromSlash(page))
}

func TestPagesOfTheSiteFitTheScreenHaveNoErrorsAndAreAccessible(t *testing.T) {
	for name, page := range sitePages {
		for _, v := range views {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				ctx := tab(t)
				url := siteURL(t, page)
				requests, wrong := open(t, ctx, v, url)
				if wide := evaluate[int64](t, ctx, "document.documentElement.scrollWidth"); wide > v.width {
					t.Errorf("the page is %d wide on a screen of %d", wide, v.width)
				}
				for _, r := range requests() {
					if !strings.HasPrefix(r, "file://"+folder(t, "SITE")) && !strings.HasPrefix(r, "data:") {
						t.Errorf("the page asks for %s", r)
					}
				}
				if all := wrong(); len(all) > 0 {
					t.Errorf("errors: %q", all)
				}
				screenshot(t, ctx, "site-"+name, v)
				if name != "report" { // TestPagesAreAccessible looks at reports
					evaluate[bool](t, ctx, "([...document.querySelectorAll('.row')].slice(30).forEach(r => r.remove()), true)") // they are alike
					seriousViolations(t, ctx)
				}
			})
		}
	}
}

func TestTheSiteFindsRequirementsAndSpeaksThreeLanguages(t *testing.T) {
	ctx := tab(t)
	_, wrong := open(t, ctx, views[0], siteURL(t, "index.html"))
	search := func(text string) {
		evaluate[bool](t, ctx, fmt.Sprintf(`(() => { const f = document.querySelector('[name=text]'); f.value = %q; f.dispatchEvent(new Event('input', {bubbles: true})); return true })()`, text))
	}
	shown := func() int { return evaluate[int](t, ctx, "document.querySelectorAll('.row:not([hidden])').length") }
	all := shown()
	search("session affinity")
	some := shown()
	if some == 0 || some >= all {
		t.Errorf("the search shows %d of %d", some, all)
	}
	other := tab(t)
	open(t, other, views[0], evaluate[string](t, ctx, "location.href"))
	if n := evaluate[int](t, other, "document.querySelectorAll('.row:not([hidden])').length"); n != some {
		t.Errorf("the address shows %d requirements elsewhere, %d here", n, some)
	}
	evaluate[bool](t, ctx, "(document.querySelector('.row:not([hidden]) a').click(), true)")
	if err := chromedp.Run(ctx, chromedp.WaitVisible("#h-verdicts")); err != nil {
		t.Fatalf("the link to a requirement: %v", err)
	}
	evaluate[bool](t, ctx, `(() => { const f = document.getElementById('language'); f.value = 'zh'; f.dispatchEvent(new Event('change', {bubbles: true})); return true })()`)
	said := evaluate[string](t, ctx, "document.querySelector('.verdict.t').innerText")
	if !strings.ContainsFunc(said, func(r rune) bool { return r > 0x4e00 && r < 0x9fff }) {
		t.Errorf("in Chinese the page says %q", said)
	}
	screenshot(t, ctx, "site-requirement-chinese", views[0])
	for name, page := range sitePages {
		if name == "report" {
			continue
		}
		for _, v := range []view{views[0], views[2]} {
			other := tab(t) // the browser keeps the language for all pages
			open(t, other, v, siteURL(t, page))
			for _, language := range []string{"zh", "ja", "en"} {
				evaluate[bool](t, other, fmt.Sprintf(`(() => { const f = document.getElementById('language'); f.value = %q; f.dispatchEvent(new Event('change', {bubbles: true})); return true })()`, language))
				if bad := evaluate[[]string](t, other, fmt.Sprintf(unspoken, language)); len(bad) > 0 {
					t.Errorf("%s, %s: not in the language of the page: %q", name, language, bad)
				}
				if wide := evaluate[int64](t, other, "document.documentElement.scrollWidth"); wide > v.width {
					t.Errorf("%s, %s: the page is %d wide on a screen of %d", name, language, wide, v.width)
				}
				if name == "overview" {
					verdicts := map[string]string{"zh": "符合", "ja": "適合", "en": "conformant"}
					if n := evaluate[int](t, other, fmt.Sprintf("document.querySelectorAll('.dot.good[aria-label$=%q]').length", verdicts[language])); n == 0 {
						t.Errorf("%s: the dots of requirements do not say their verdict", language)
					}
				}
			}
		}
	}
	if all := wrong(); len(all) > 0 {
		t.Errorf("errors: %q", all)
	}
}
