#!/bin/sh
# The node's nginx files, filled in, as nginx itself reads them.
# nginx.sh TERRAFORM WORK
set -eu
terraform=$1 work=$2/nginx
files=$PWD/infra/modules/node/files
sh tests/debian.sh nginx
nginx=$PWD/.tools/nginx/nginx

mkdir -p "$work"
cd "$work"
echo "templatefile(\"$files/nginx-engines.conf.tftpl\", { ports = [8001, 8002], port = 8080, health = \"http://reveille_engines/health\" })" |
    timeout 60 "$terraform" console | sed '1d;$d' | sed "s#/var/log/nginx#$work#" > reveille-engines.conf
sed 's#http://127.0.0.1:8000/health#http://reveille_engines/health#' "$files/nginx-reveille.conf" > reveille.conf
temp=$(for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $work/$kind;"; done)
cat > nginx.conf <<EOF
error_log stderr;
pid $work/pid;
events {}
http {
    $temp
    include $work/reveille*.conf;
}
EOF
"$nginx" -t -q -p "$work" -c "$work/nginx.conf"
echo "nginx: the node's files are read"
