// The JDK's HttpClient as a program finds it: proxy and trust come from the JVM's properties.
import java.io.InputStream;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;

public class JavaHttps {
  public static void main(String[] args) throws Exception {
    HttpClient client = HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build();
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(args[1]));
    if (args[0].equals("post")) request.POST(BodyPublishers.ofFile(Path.of(args[2])));
    HttpResponse<InputStream> response = client.send(request.build(), BodyHandlers.ofInputStream());
    System.out.println(response.statusCode());
    byte[] data = new byte[65536];
    for (int count; (count = response.body().read(data)) > 0; System.out.flush()) {
      System.out.write(data, 0, count);
    }
  }
}
