# Loads an identity with OpenZiti's C SDK and tries to reach services; the SDK asks the controller only for those it was shown.
import socket
import sys
import time

import openziti
from openziti import zitilib

context = openziti.load(sys.argv[1])
time.sleep(2)
for service in sys.argv[2:]:
    zitilib._ziti_connect(zitilib.ziti_socket(socket.SOCK_STREAM), context._ctx, service.encode(), None)
