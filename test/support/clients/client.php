<?php
// The stream wrapper and hash(): creates a task, then answers its callback.
// URL USER REF; the secret in API_SECRET. json_encode writes \/ and \uXXXX; ops is a single object.
[, $url, $user, $ref] = $argv;
$secret = getenv('API_SECRET');

function send($op) {
    global $url, $user, $secret;
    $body = json_encode(['ops' => $op], JSON_PRESERVE_ZERO_FRACTION);
    $time = time();
    $signature = sha1($time . $secret . $body . $secret);
    $options = ['method' => 'POST', 'header' => "Content-Type: application/json\r\n", 'content' => $body];
    $context = stream_context_create(['http' => $options]);
    echo file_get_contents("$url/api/1/json/$user/$time/$signature", false, $context), "\n";
}

$common = ['obj' => 'task', 'conv_id' => 1234, 'ref' => $ref];
send(['type' => 'create', 'data' => ['name' => 'Київ', 'amount' => 10.0]] + $common);
send(['type' => 'modify', 'data' => ['paid' => true]] + $common);
