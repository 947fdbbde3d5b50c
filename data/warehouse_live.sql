-- The warehouse query over sensors that report live: the highest temperature of each hour, once all have closed it.
-- Each sensor's feed is a directory, an input of its own, which `xmlstream receive --apart` writes.

CREATE TABLE reports (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${FEED}', rowTag 'tempdata', schemes 'hour', documents 'directories');

SELECT MAX(currtmp) AS maxtemp, hour
FROM reports
GROUP BY hour;
