// Go's net/http as a program finds it: proxy and trust come from the environment.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	var response *http.Response
	var err error
	if os.Args[1] == "post" {
		var file *os.File
		if file, err = os.Open(os.Args[3]); err == nil {
			response, err = http.Post(os.Args[2], "application/octet-stream", file)
		}
	} else {
		response, err = http.Get(os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(response.StatusCode)
	buffer := make([]byte, 65536)
	for {
		count, err := response.Body.Read(buffer)
		os.Stdout.Write(buffer[:count])
		if err == io.EOF {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
