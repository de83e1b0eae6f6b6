package apiserver

// Prepare makes what the servers of this process share and would make at first use, when a request waits for it: the structure of all types and the documents of the
// schema, which take a tenth of a second together. It is safe for concurrent use.
func Prepare() {
	typeConverter()
	for _, gv := range groupVersions {
		openAPIOf(gv)
	}
}
