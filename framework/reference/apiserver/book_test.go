package apiserver

import (
	"testing"

	"github.com/service-conformance/conformance/framework/reference/rule/ruletest"
)

func TestRequestBook(t *testing.T) { ruletest.Book(t, newRequestBook, requestWrongs) }

func TestClusterBook(t *testing.T) { ruletest.Book(t, newClusterBook, clusterWrongs) }
