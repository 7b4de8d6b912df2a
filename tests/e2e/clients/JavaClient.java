// The JDK's java.net.http.HttpClient.
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;

public class JavaClient {
  public static void main(String[] args) throws Exception {
    URI proxy = URI.create(System.getenv("http_proxy"));
    HttpClient client = HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .followRedirects(HttpClient.Redirect.NORMAL)
        .proxy(ProxySelector.of(new InetSocketAddress(proxy.getHost(), proxy.getPort())))
        .build();
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(args[1])).timeout(Duration.ofSeconds(20));
    if (args[0].equals("post")) {
      request.POST(BodyPublishers.ofFile(Path.of(args[2])));
    }
    try {
      HttpResponse<InputStream> response = client.send(request.build(), BodyHandlers.ofInputStream());
      System.out.println(response.statusCode());
      byte[] data = new byte[65536];
      for (int count; (count = response.body().read(data)) > 0; System.out.flush()) {
        System.out.write(data, 0, count);
      }
    } catch (java.io.IOException error) {
      System.err.println("error: " + error.getMessage());
      System.exit(1);
    }
  }
}
