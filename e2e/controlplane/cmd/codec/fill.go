package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Schemas contain schemas without end.
const maxDepth = 14

// filler sets fields of objects.
type filler struct {
	name string
	// chance is how likely a field is set.
	chance float64
	// empty sets pointers, lists and maps, but to nothing.
	empty  bool
	random *rand.Rand
	count  int
}

// number counts up without random, so that every field has a value of its own.
func (f *filler) number(below int) int {
	if f.random != nil {
		return f.random.Intn(below)
	}
	f.count++
	return f.count % below
}

func (f *filler) wanted(depth int) bool {
	if f.random != nil {
		return depth < maxDepth && f.random.Float64() < f.chance
	}
	return depth < maxDepth && f.chance > 0
}

func (f *filler) fill(v reflect.Value, depth int) {
	if f.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			// The type's own name and version are not part of the message.
			if v.Type().Field(i).Name == "TypeMeta" || !v.Type().Field(i).IsExported() {
				continue
			}
			if structural(v.Field(i)) || f.wanted(depth) {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if v.Type().Elem() == reflect.TypeFor[apiextensions.JSONSchemaProps]() && depth > 8 {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		if !f.empty {
			f.fill(v.Elem(), depth)
		}
	case reflect.Slice:
		f.fillSlice(v, depth)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if f.empty || (v.Type().Elem() == reflect.TypeFor[apiextensions.JSONSchemaProps]() && depth > 8) {
			return
		}
		for i := range 1 + f.number(2) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(fmt.Sprintf("key%d", 9-i))
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		if !f.empty {
			v.SetString([]string{"a", "text", "ünïcode", `"quoted"`, "10", ""}[f.number(6)])
		}
	case reflect.Bool:
		v.SetBool(!f.empty)
	case reflect.Int32, reflect.Int64, reflect.Int:
		if !f.empty {
			v.SetInt([]int64{1, -1, 0, 300, -2147483648, 2147483647}[f.number(6)])
		}
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		if !f.empty {
			v.SetUint(uint64(f.number(200)))
		}
	case reflect.Float64:
		if !f.empty {
			v.SetFloat([]float64{1, -2.5, 0, 1e10}[f.number(4)])
		}
	}
}

func (f *filler) fillSlice(v reflect.Value, depth int) {
	if v.Type().Elem() == reflect.TypeFor[apiextensions.JSONSchemaProps]() && depth > 6 {
		return
	}
	length := 1 + f.number(2)
	if f.empty {
		length = 0
	}
	v.Set(reflect.MakeSlice(v.Type(), length, length))
	for i := range length {
		f.fill(v.Index(i), depth+1)
	}
}

// structural is a struct that is always there: what matters is within.
func structural(v reflect.Value) bool {
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, resource.Quantity, intstr.IntOrString, runtime.RawExtension:
		return false
	}
	return v.Kind() == reflect.Struct
}

// special sets types whose fields have a meaning together.
func (f *filler) special(v reflect.Value) bool {
	moments := []time.Time{
		time.Date(2000, 1, 2, 3, 4, 5, 678901000, time.UTC), time.Unix(0, 0), {},
		time.Date(1969, 12, 31, 23, 59, 58, 500000000, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
	}
	moment := func() time.Time {
		if f.empty {
			return time.Time{}
		}
		return moments[f.number(len(moments))]
	}
	switch v.Addr().Interface().(type) {
	case *metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(moment())))
	case *metav1.MicroTime:
		v.Set(reflect.ValueOf(metav1.NewMicroTime(moment())))
	case *metav1.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: []time.Duration{90 * time.Second, 0, -5 * time.Millisecond}[f.number(3)]}))
	case *resource.Quantity:
		texts := []string{"0", "100m", "1Gi", "1.5", "-3", "1e3", "12e6", "1n", "0.5Mi"}
		if !f.empty {
			v.Set(reflect.ValueOf(resource.MustParse(texts[f.number(len(texts))])))
		}
	case *intstr.IntOrString:
		values := []intstr.IntOrString{intstr.FromInt32(8080), intstr.FromString("25%"), intstr.FromInt32(0), intstr.FromString(""), intstr.FromInt32(-1)}
		if !f.empty {
			v.Set(reflect.ValueOf(values[f.number(len(values))]))
		}
	case *runtime.RawExtension:
		if !f.empty {
			v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"some":{"data":[1,"two",null]}}`)}))
		}
	case *metav1.FieldsV1:
		v.Set(reflect.ValueOf(*metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`)))
	case *apiextensions.JSON:
		v.Set(reflect.ValueOf(apiextensions.JSON{Raw: []byte([]string{`1`, `"text"`, `{"a":[true]}`, `false`}[f.number(4)])}))
	case *apiextensions.JSONSchemaPropsOrBool:
		values := []apiextensions.JSONSchemaPropsOrBool{{Allows: true}, {Allows: false}, {Allows: true, Schema: &apiextensions.JSONSchemaProps{Type: "string"}}}
		v.Set(reflect.ValueOf(values[f.number(3)]))
	case *apiextensions.JSONSchemaPropsOrArray:
		schema := apiextensions.JSONSchemaProps{Type: "integer"}
		values := []apiextensions.JSONSchemaPropsOrArray{{Schema: &schema}, {JSONSchemas: []apiextensions.JSONSchemaProps{schema, schema}}}
		v.Set(reflect.ValueOf(values[f.number(2)]))
	case *apiextensions.JSONSchemaPropsOrStringArray:
		values := []apiextensions.JSONSchemaPropsOrStringArray{{Schema: &apiextensions.JSONSchemaProps{Type: "object"}}, {Property: []string{"a", "b"}}}
		v.Set(reflect.ValueOf(values[f.number(2)]))
	default:
		return false
	}
	return true
}
