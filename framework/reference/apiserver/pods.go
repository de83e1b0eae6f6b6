package apiserver

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podStrategy keeps pods as objects; none of them runs.
type podStrategy struct{}

func (podStrategy) defaults(_ *Server, obj object) {
	spec := &obj.(*corev1.Pod).Spec
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirst
	}
	if spec.SchedulerName == "" {
		spec.SchedulerName = corev1.DefaultSchedulerName
	}
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = new(corev1.DefaultEnableServiceLinks)
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if c.TerminationMessagePath == "" {
				c.TerminationMessagePath = corev1.TerminationMessagePathDefault
			}
			if c.TerminationMessagePolicy == "" {
				c.TerminationMessagePolicy = corev1.TerminationMessageReadFile
			}
			if c.ImagePullPolicy == "" {
				c.ImagePullPolicy = corev1.PullIfNotPresent
			}
			for j := range c.Ports {
				if c.Ports[j].Protocol == "" {
					c.Ports[j].Protocol = corev1.ProtocolTCP
				}
			}
		}
	}
}

func (podStrategy) create(_ *Server, obj object, _ bool) (transaction, error) {
	pod := obj.(*corev1.Pod)
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
	errs := validateMetadata(pods, &pod.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	errs = append(errs, validateContainers(&pod.Spec)...)
	return noTransaction{}, refusal(pods, pod.Name, errs)
}

func validateContainers(spec *corev1.PodSpec) (errs field.ErrorList) {
	path := field.NewPath("spec", "containers")
	if len(spec.Containers) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	names := map[string]bool{}
	for i, c := range spec.Containers {
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(path.Index(i).Child("name"), ""))
		case names[c.Name]:
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), c.Name))
		default:
			errs = append(errs, validateDNSLabel(c.Name, path.Index(i).Child("name"))...)
		}
		names[c.Name] = true
		if c.Image == "" {
			errs = append(errs, field.Required(path.Index(i).Child("image"), ""))
		}
		for j, p := range c.Ports {
			errs = append(errs, validatePortNumber(p.ContainerPort, path.Index(i).Child("ports").Index(j).Child("containerPort"))...)
			errs = append(errs, validateProtocol(p.Protocol, path.Index(i).Child("ports").Index(j).Child("protocol"))...)
		}
	}
	return errs
}

func (podStrategy) update(_ *Server, obj, old object, subresource string, _ bool) (transaction, error) {
	pod, was := obj.(*corev1.Pod), old.(*corev1.Pod)
	errs := validateMetadataUpdate(&pod.ObjectMeta, &was.ObjectMeta)
	if subresource == "status" {
		pod.Spec = was.Spec
	} else {
		pod.Status = was.Status
		errs = append(errs, validateContainers(&pod.Spec)...)
	}
	return noTransaction{}, refusal(pods, pod.Name, errs)
}

func (podStrategy) deleted(*Server, object) {}

func (podStrategy) warnings(_ *Server, _, _ object, _ string) []string { return nil }

// podGracePeriod is how many seconds a pod gets to end: none if it has not been given to a node or has ended already.
func podGracePeriod(pod *corev1.Pod, asked *int64) int64 {
	seconds := int64(0)
	switch {
	case asked != nil:
		seconds = *asked
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	return max(seconds, 0)
}

func podFields(o object, set fields.Set) {
	pod := o.(*corev1.Pod)
	set["spec.nodeName"] = pod.Spec.NodeName
	set["spec.restartPolicy"] = string(pod.Spec.RestartPolicy)
	set["spec.schedulerName"] = pod.Spec.SchedulerName
	set["spec.serviceAccountName"] = pod.Spec.ServiceAccountName
	set["spec.hostNetwork"] = strconv.FormatBool(pod.Spec.HostNetwork)
	set["status.phase"] = string(pod.Status.Phase)
	set["status.podIP"] = pod.Status.PodIP
	set["status.nominatedNodeName"] = pod.Status.NominatedNodeName
}
